"""Torn read: two fields that belong together are read with an await between."""

import asyncio
import sys

FIXED = sys.argv[1:] == ["fixed"]


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Config:
    def __init__(self):
        self.host, self.port = "old", 1

    async def read(self):
        if FIXED:
            return self.host, self.port
        host = self.host
        await turns(1)
        return host, self.port

    async def write(self):
        await turns(4)
        self.host, self.port = "new", 2


async def main():
    config = Config()
    seen, _ = await asyncio.gather(config.read(), config.write())
    return seen in {("old", 1), ("new", 2)}


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
