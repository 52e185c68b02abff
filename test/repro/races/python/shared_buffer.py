"""A generator hands out its own buffer, and refills it while the reader still reads."""

import asyncio
import sys

FIXED = sys.argv[1:] == ["fixed"]


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Source:
    def __init__(self):
        self.buffer = []

    async def fill(self):
        for number in range(3):
            self.buffer.append(number)
            await turns(3)
            self.buffer.clear()

    async def read(self):
        rows = []
        while len(rows) < 1:
            if self.buffer:
                row = list(self.buffer) if FIXED else self.buffer
                await turns(1)
                rows.append(row[0])
            await turns(1)
        return rows


async def main():
    source = Source()
    _, rows = await asyncio.gather(source.fill(), source.read())
    return rows == [0]


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
