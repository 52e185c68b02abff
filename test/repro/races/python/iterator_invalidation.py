"""Iterator invalidation: subscribers are told one by one while one of them leaves."""

import asyncio
import sys

FIXED = sys.argv[1:] == ["fixed"]


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Channel:
    def __init__(self):
        self.subscribers = {name: 0 for name in "abc"}

    async def publish(self):
        names = list(self.subscribers) if FIXED else self.subscribers
        for name in names:
            await turns(1)
            if name in self.subscribers:
                self.subscribers[name] += 1

    async def leave(self, name):
        await turns(6)
        self.subscribers.pop(name)


async def main():
    channel = Channel()
    await asyncio.gather(channel.publish(), channel.leave("b"))
    return True


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
