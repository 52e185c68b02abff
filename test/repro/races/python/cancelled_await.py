"""Cancelled await: what holds a slot is cancelled before it gives the slot back."""

import asyncio
import contextlib
import sys

FIXED = sys.argv[1:] == ["fixed"]


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Pool:
    def __init__(self):
        self.free = 1

    async def work(self):
        self.free -= 1
        if FIXED:
            try:
                await turns(2)
            finally:
                self.free += 1
        else:
            await turns(2)
            self.free += 1


async def main():
    pool = Pool()
    task = asyncio.create_task(pool.work())
    await turns(6)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return pool.free == 1


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
