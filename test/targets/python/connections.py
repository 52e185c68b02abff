"""
Tasks that want a pool's connections: `lost` (cancelled clean-ups never gave them back), `busy` (all in use, with a queue), `workers` (idle).
Always the same tasks: `kept` (who had the connections ended and kept them), `unwoken` (all are free, and nobody is woken), `long` (in use all the time).
"""
import asyncio
import os
import sys


class EchoPool:
    def __init__(self, size):
        self.free = [object() for _ in range(size)]
        self.used = []
        self.waiters = []

    async def acquire(self):
        while not self.free:
            freed = asyncio.get_running_loop().create_future()
            self.waiters.append(freed)
            try:
                await freed
            finally:
                if freed in self.waiters:
                    self.waiters.remove(freed)
        connection = self.free.pop()
        self.used.append(connection)
        return connection

    def release(self, connection):
        self.used.remove(connection)
        self.free.append(connection)
        if self.waiters and not self.waiters[0].done():
            self.waiters[0].set_result(None)


class JobPool:
    def __init__(self):
        self.jobs = asyncio.Queue()

    async def get(self):
        return await self.jobs.get()


async def request(pool, seconds, gives_back):
    connection = await pool.acquire()
    await asyncio.sleep(seconds)
    if gives_back:
        pool.release(connection)


async def work(pool):
    while True:
        await pool.get()


async def attempt(pool, seconds, gives_back):
    try:
        await asyncio.wait_for(request(pool, seconds, gives_back), 1.5)
    except asyncio.TimeoutError:
        pass


async def stand(pool, mode):
    """Three take the connections and keep them in their way, then eight want one."""
    taken = [await pool.acquire() for _ in range(3)]
    using = [asyncio.ensure_future(asyncio.sleep(3600))] if mode != "long" else []
    using += [asyncio.ensure_future(request(pool, 3600, True)) for _ in range(8)]
    if mode == "long":
        pool.release(taken.pop())
    await asyncio.sleep(0)
    if mode == "unwoken":
        waiters, pool.waiters = pool.waiters, []
        for connection in taken:
            pool.release(connection)
        pool.waiters = waiters
    print("READY", os.getpid(), 0, flush=True)
    await asyncio.wait(using)


async def main(mode):
    background = set()
    if mode in ("kept", "unwoken", "long"):
        await stand(EchoPool(3), mode)
    if mode == "workers":
        jobs = JobPool()
        background.update(asyncio.ensure_future(work(jobs)) for _ in range(8))
    pool = EchoPool(3)
    print("READY", os.getpid(), 0, flush=True)
    while True:
        if mode != "workers":
            one = asyncio.ensure_future(attempt(pool, 0.1, mode == "busy"))
            background.add(one)
            one.add_done_callback(background.discard)
        # Of `busy` 25 a second of 30 that could be served come, in bursts of ten: some always wait.
        await asyncio.sleep(0.04)
        if mode == "busy" and len(background) < 3:
            for _ in range(10):
                one = asyncio.ensure_future(attempt(pool, 0.1, True))
                background.add(one)
                one.add_done_callback(background.discard)


asyncio.run(main(sys.argv[1]))
