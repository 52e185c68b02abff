"""Unlocked cache: a value loaded before an update is stored after it."""

import asyncio
import sys

FIXED = sys.argv[1:] == ["fixed"]


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Prices:
    def __init__(self):
        self.stored = 1
        self.cache = {}
        self.version = 0

    async def read(self):
        if "price" not in self.cache:
            version = self.version
            value = self.stored
            await turns(2)
            if not FIXED or version == self.version:
                self.cache["price"] = value
        return self.cache.get("price", self.stored)

    async def update(self, value):
        await turns(5)
        self.stored = value
        self.version += 1
        self.cache.pop("price", None)


async def main():
    prices = Prices()
    await asyncio.gather(prices.read(), prices.update(2))
    return await prices.read() == 2


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
