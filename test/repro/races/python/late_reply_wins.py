"""Out of order: the reply to an older question overwrites the one to a newer."""

import asyncio
import sys

FIXED = sys.argv[1:] == ["fixed"]


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Search:
    def __init__(self):
        self.asked = 0
        self.shown = None

    async def type(self, text):
        self.asked += 1
        mine = self.asked
        await turns(2)
        if not FIXED or mine == self.asked:
            self.shown = text


async def second(search):
    await turns(3)
    await search.type("ab")


async def main():
    search = Search()
    await asyncio.gather(search.type("a"), second(search))
    return search.shown == "ab"


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
