"""Lost wake-up: a waiter looks, is kept up, and then waits for what has already happened."""

import asyncio
import sys

FIXED = sys.argv[1:] == ["fixed"]


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Mailbox:
    def __init__(self):
        self.items = []
        self.waiter = None

    async def take(self):
        while not self.items:
            if not FIXED:
                await turns(1)
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter
        return self.items.pop()

    async def put(self, item):
        await turns(5)
        self.items.append(item)
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


async def main():
    mailbox = Mailbox()
    await asyncio.gather(mailbox.take(), mailbox.put(1))
    return True


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
