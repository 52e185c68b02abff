"""A time-out gives up on a write that still happens, and the retry writes again."""

import asyncio
import sys

FIXED = sys.argv[1:] == ["fixed"]


class Ledger:
    def __init__(self):
        self.entries = []

    async def write(self, key):
        await asyncio.sleep(0.01)
        if FIXED and key in self.entries:
            return
        self.entries.append(key)

    async def write_in_time(self, key):
        task = asyncio.ensure_future(self.write(key))
        done, _ = await asyncio.wait([task], timeout=0.04)
        if not done:
            await self.write(key)
        await task


async def main():
    ledger = Ledger()
    await ledger.write_in_time("one")
    return ledger.entries == ["one"]


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
