"""ABA: a value is compared with what it was, and was another one in between."""

import asyncio
import sys

FIXED = sys.argv[1:] == ["fixed"]


async def turns(count):
    """What a call to something outside looks like to the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Stack:
    def __init__(self):
        self.head = "A"
        self.version = 0
        self.popped = []

    def put(self, head):
        self.head = head
        self.version += 1

    async def pop(self):
        head, version = self.head, self.version
        following = "B"
        await turns(1)
        if version == self.version if FIXED else head == self.head:
            self.popped.append(following)
            self.put(following)

    async def exchange(self):
        await turns(4)
        if self.head != "A":
            return
        self.put("C")
        await turns(1)
        # B is gone; whoever still has it as what follows puts it back.
        self.put("A")
        self.popped.append("B")


async def main():
    stack = Stack()
    await asyncio.gather(stack.pop(), stack.exchange())
    return stack.popped.count("B") <= 1


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
