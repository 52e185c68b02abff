"""Use after close: the session is closed while a request still uses it."""

import asyncio
import sys

FIXED = sys.argv[1:] == ["fixed"]


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Session:
    def __init__(self):
        self.open = True
        self.users = 0

    async def request(self):
        self.users += 1
        await turns(2)
        assert self.open, "used after close"
        self.users -= 1

    async def close(self):
        await turns(7)
        while FIXED and self.users > 0:
            await turns(1)
        self.open = False


async def main():
    session = Session()
    await asyncio.gather(session.request(), session.close())
    return True


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
