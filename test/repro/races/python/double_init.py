"""Double initialisation: two callers find no connection and both open one."""

import asyncio
import contextlib
import sys

FIXED = sys.argv[1:] == ["fixed"]
NO_LOCK = contextlib.AsyncExitStack


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Client:
    def __init__(self):
        self.connection = None
        self.opened = 0
        self.lock = asyncio.Lock()

    async def get(self):
        async with self.lock if FIXED else NO_LOCK():
            if self.connection is None:
                await turns(2)
                self.opened += 1
                self.connection = object()
            return self.connection


async def second(client):
    await turns(5)
    await client.get()


async def main():
    client = Client()
    await asyncio.gather(client.get(), second(client))
    return client.opened == 1


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
