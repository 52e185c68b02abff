"""Tasks that wait for conditions: `lost` (a job came, its notification did not), `idle`, `busy` (jobs and notifications all the time), `full`."""
import asyncio
import os
import sys
from collections import deque


class Jobs:
    def __init__(self):
        self.jobs = deque()
        self.changed = asyncio.Condition()

    async def take(self):
        async with self.changed:
            while not self.jobs:
                await self.changed.wait()
            return self.jobs.popleft()

    async def put(self, notifies=True):
        async with self.changed:
            self.jobs.append(1)
            if notifies:
                self.changed.notify(1)

    async def put_when_there_is_room(self):
        async with self.changed:
            while len(self.jobs) >= 1:
                await self.changed.wait()
            self.jobs.append(1)


async def work(jobs):
    while True:
        await jobs.take()


async def main(mode):
    jobs = Jobs()
    if mode == "full":
        await jobs.put()
    waiting = jobs.put_when_there_is_room if mode == "full" else lambda: work(jobs)
    tasks = [asyncio.ensure_future(waiting()) for _ in range(3)]
    await asyncio.sleep(0.05)
    if mode == "lost":
        await jobs.put(notifies=False)
    print("READY", os.getpid(), 0, flush=True)
    while True:
        await asyncio.sleep(0.01)
        if mode == "busy":
            for _ in range(2):
                await jobs.put()


asyncio.run(main(sys.argv[1]))
