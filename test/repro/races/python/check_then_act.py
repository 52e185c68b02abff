"""Check then act: a seat is looked up, a payment awaited, the seat taken."""

import asyncio
import contextlib
import sys

FIXED = sys.argv[1:] == ["fixed"]
NO_LOCK = contextlib.AsyncExitStack


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Cinema:
    def __init__(self):
        self.free = 1
        self.sold = []
        self.lock = asyncio.Lock()

    async def book(self, who):
        async with self.lock if FIXED else NO_LOCK():
            if self.free > 0:
                await turns(1)
                self.free -= 1
                self.sold.append(who)


async def late(cinema):
    await turns(4)
    await cinema.book("late")


async def main():
    cinema = Cinema()
    await asyncio.gather(cinema.book("early"), late(cinema))
    return len(cinema.sold) == 1


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
