"""Lock released too early: it is held for the read and not for the write."""

import asyncio
import sys

FIXED = sys.argv[1:] == ["fixed"]


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Counter:
    def __init__(self):
        self.value = 0
        self.lock = asyncio.Lock()

    async def increment(self, after):
        await turns(after)
        async with self.lock:
            value = self.value
            if FIXED:
                await turns(1)
                self.value = value + 1
                return
        await turns(1)
        self.value = value + 1


async def main():
    counter = Counter()
    await asyncio.gather(counter.increment(0), counter.increment(6))
    return counter.value == 2


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
