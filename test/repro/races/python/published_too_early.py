"""Published too early: a flag says ready before the data are there."""

import asyncio
import sys

FIXED = sys.argv[1:] == ["fixed"]


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Model:
    def __init__(self):
        self.ready = False
        self.weights = None

    async def load(self):
        if not FIXED:
            self.ready = True
        await turns(1)
        self.weights = [1]
        self.ready = True

    async def answer(self):
        await turns(4)
        return not self.ready or self.weights[0] == 1


async def main():
    model = Model()
    _, right = await asyncio.gather(model.load(), model.answer())
    return right


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
