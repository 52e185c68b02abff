"""
Threads that want a pool's connections: `lost` (some never gave theirs back), `kept` (two threads keep theirs and wait for something else), `busy` (all
in use, with a queue), `workers` (idle ones of a pool of jobs). With a time-out of a minute where the second argument is `timed`.
"""
import os
import queue
import sys
import threading
import time

SIZE = 2
TIMEOUT = 60 if sys.argv[2:] == ["timed"] else None


class Connection:
    def __init__(self, pool):
        self.pool = pool


class ConnectionPool:
    def __init__(self):
        self.free = queue.LifoQueue(SIZE)
        for _ in range(SIZE):
            self.free.put(Connection(self))

    def checkout(self):
        return self.free.get(timeout=TIMEOUT)

    def release(self, connection):
        self.free.put(connection)


class JobPool:
    def __init__(self):
        self.jobs = queue.Queue()

    def get(self):
        return self.jobs.get()


never = threading.Event()
kept = []


def load(pool, forgets):
    connection = pool.checkout()
    time.sleep(0.02)
    if forgets:
        kept.append(connection)
    else:
        pool.release(connection)


def report(pool):
    connection = pool.checkout()
    never.wait()
    pool.release(connection)


def work(pool, mode, number):
    if mode == "kept" and number < SIZE:
        report(pool)
    time.sleep(0.1)
    while True:
        load(pool, mode == "lost" and number < SIZE)
        time.sleep(0.01)


def serve(jobs):
    while True:
        jobs.get()


mode = sys.argv[1]
pool = JobPool() if mode == "workers" else ConnectionPool()
for number in range(8):
    arguments = (pool,) if mode == "workers" else (pool, mode, number)
    threading.Thread(target=serve if mode == "workers" else work, args=arguments, name=f"worker-{number}", daemon=True).start()
print("READY", os.getpid(), 0, flush=True)
threading.Event().wait()
