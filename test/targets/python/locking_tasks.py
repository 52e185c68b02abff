"""asyncio tasks that wait: `locking_tasks.py CASE` prints READY and its pid, then stays as it is for three minutes. Standard library only."""
import asyncio
import os
import sys


async def order(healthy):
    """Two locks, taken in opposite order; healthy: in the same."""
    stock, cart = asyncio.Lock(), asyncio.Lock()

    async def reserve():
        async with stock:
            await asyncio.sleep(0.05)
            async with cart:
                await asyncio.sleep(0.01)

    async def checkout():
        async with stock if healthy else cart:
            await asyncio.sleep(0.05)
            async with cart if healthy else stock:
                await asyncio.sleep(0.01)

    await asyncio.gather(reserve(), checkout())


async def group(_):
    """A task holds a lock and waits for children that need it."""
    ledger = asyncio.Lock()

    async def post(number):
        async with ledger:
            return number

    async with ledger:
        await asyncio.gather(post(1), post(2))


async def lost(_):
    """An item gets into the queue past its methods: the consumer is not woken."""
    jobs = asyncio.Queue()

    async def consume():
        await jobs.get()

    task = asyncio.ensure_future(consume())
    await asyncio.sleep(0.1)
    jobs._queue.append("work")
    await task


async def idle(_):
    """What tasks of a healthy server wait for."""
    jobs, stop, busy, slow = asyncio.Queue(), asyncio.Event(), asyncio.Lock(), asyncio.Lock()

    async def worker():
        while True:
            async with busy:
                await asyncio.sleep(0.002)

    async def holder():
        async with slow:
            await asyncio.sleep(600)

    async def behind():
        async with slow:
            pass

    async def patient():
        condition = asyncio.Condition()
        async with condition:
            await condition.wait()

    await asyncio.gather(jobs.get(), stop.wait(), worker(), worker(), worker(), holder(), behind(), patient())


async def main(name, healthy):
    case = {"order": order, "group": group, "lost": lost, "idle": idle}[name]
    task = asyncio.ensure_future(case(healthy))
    await asyncio.sleep(0.3)
    print("READY", os.getpid(), 0, flush=True)
    await asyncio.sleep(180)
    task.cancel()


case, _, variant = sys.argv[1].partition("-")
asyncio.run(main(case, variant == "healthy"))
