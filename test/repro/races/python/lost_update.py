"""Lost update: a balance is read, something awaited, the sum written back."""

import asyncio
import contextlib
import sys

FIXED = sys.argv[1:] == ["fixed"]
NO_LOCK = contextlib.AsyncExitStack


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Account:
    def __init__(self):
        self.balance = 0
        self.lock = asyncio.Lock()

    async def add(self, amount, after):
        await turns(after)
        async with self.lock if FIXED else NO_LOCK():
            before = self.balance
            await turns(1)
            self.balance = before + amount


async def main():
    account = Account()
    await asyncio.gather(*[account.add(1, 5 * number) for number in range(3)])
    return account.balance == 3


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
