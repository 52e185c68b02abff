"""Workers that wait for jobs on a condition, some of them with a deadline; each job must be taken by somebody."""

import asyncio


class Jobs:
    def __init__(self):
        self.condition = asyncio.Condition()
        self.waiting = 0

    async def put(self):
        async with self.condition:
            self.waiting += 1
            self.condition.notify()
            await asyncio.sleep(0.01)

    async def take(self):
        async with self.condition:
            while not self.waiting:
                await self.condition.wait()
            self.waiting -= 1


async def hand_over(patience):
    """One worker with a deadline, one without, and one job: it is taken, and two jobs let both go home."""
    jobs = Jobs()
    hasty = asyncio.ensure_future(asyncio.wait_for(jobs.take(), patience))
    patient = asyncio.ensure_future(jobs.take())
    await asyncio.sleep(0.01)
    await jobs.put()
    await asyncio.wait([hasty])
    if hasty.exception() is None:
        await jobs.put()
    await patient
