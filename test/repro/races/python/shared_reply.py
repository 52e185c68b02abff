"""Cross-talk: two calls share a connection and the slot of its reply."""

import asyncio
import contextlib
import sys

FIXED = sys.argv[1:] == ["fixed"]
NO_LOCK = contextlib.AsyncExitStack


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Connection:
    def __init__(self):
        self.reply = None
        self.lock = asyncio.Lock()

    async def ask(self, question):
        async with self.lock if FIXED else NO_LOCK():
            self.reply = f"answer to {question}"
            await turns(2)
            return self.reply


async def second(connection):
    await turns(6)
    return await connection.ask("two")


async def main():
    connection = Connection()
    replies = await asyncio.gather(connection.ask("one"), second(connection))
    return replies == ["answer to one", "answer to two"]


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
