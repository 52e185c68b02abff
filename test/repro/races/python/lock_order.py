"""Lock order: two transfers take the same two locks the other way round."""

import asyncio
import sys

FIXED = sys.argv[1:] == ["fixed"]


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Bank:
    def __init__(self):
        self.locks = {"a": asyncio.Lock(), "b": asyncio.Lock()}

    async def transfer(self, source, target):
        first, second = sorted((source, target)) if FIXED else (source, target)
        async with self.locks[first]:
            await turns(1)
            async with self.locks[second]:
                await turns(1)


async def back(bank):
    await turns(6)
    await bank.transfer("b", "a")


async def main():
    bank = Bank()
    await asyncio.gather(bank.transfer("a", "b"), back(bank))
    return True


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
