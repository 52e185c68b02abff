"""Threads that wait: `locking.py CASE` prints READY and its pid, then stays as it is for three minutes. Standard library only."""
import asyncio
import concurrent.futures
import os
import queue
import sys
import threading
import time


def start(name, function, *arguments):
    threading.Thread(target=function, args=arguments, name=name, daemon=True).start()


class Account:
    def __init__(self):
        self.lock = threading.RLock()


def order(healthy):
    """Two locks, taken in opposite order; healthy: in the same."""
    ledger = threading.Lock()
    account = Account()
    both = threading.Barrier(2)

    def settle():
        with ledger:
            if not healthy:
                both.wait()
            with account.lock:
                time.sleep(0.01)

    def transfer():
        with ledger if healthy else account.lock:
            if not healthy:
                both.wait()
            with account.lock if healthy else ledger:
                time.sleep(0.01)

    start("settle", settle)
    start("transfer", transfer)


def idle(_):
    """What threads of a healthy server wait for: work, an end, a time, each other's results."""
    start("consumer", queue.Queue().get)
    start("stopper", threading.Event().wait)
    start("sleeper", time.sleep, 600)
    condition = threading.Condition()

    def patient():
        with condition:
            condition.wait()

    start("patient", patient)
    concurrent.futures.ThreadPoolExecutor(2).submit(int)
    busy = threading.Lock()

    def worker():
        while True:
            with busy:
                time.sleep(0.002)

    for number in range(3):
        start(f"worker {number}", worker)
    slow = threading.Lock()

    def holder():
        with slow:
            time.sleep(600)

    def behind():
        time.sleep(0.1)
        with slow:
            pass

    start("holder", holder)
    start("behind", behind)


def lost(_):
    """An item is put past the queue's own methods: nobody is told."""
    waiting = queue.Queue()
    start("consumer", waiting.get)
    time.sleep(0.3)
    waiting.queue.append("work")


async def answer():
    return 42


def own_loop(healthy):
    """A callback of a loop waits for a coroutine that the same loop has to run; healthy: another thread does."""

    async def main():
        loop = asyncio.get_running_loop()

        def ask():
            return asyncio.run_coroutine_threadsafe(answer(), loop).result()

        print("READY", os.getpid(), 0, flush=True)
        if healthy:
            await loop.run_in_executor(None, ask)
        else:
            ask()
        await asyncio.sleep(600)

    start("loop", asyncio.run, main())


def contended(healthy):
    """Three threads that hold one lock while they sleep; healthy: sleep first, and hold it for a moment."""
    guard = threading.Lock()
    done = []

    def serve():
        while True:
            if healthy:
                time.sleep(0.01)
                with guard:
                    done[:] = [1]
            else:
                with guard:
                    time.sleep(0.01)

    for i in range(3):
        start(f"server {i}", serve)


case, _, variant = sys.argv[1].partition("-")
{"order": order, "idle": idle, "lost": lost, "own": own_loop, "contended": contended}[case](variant == "healthy")
if case != "own":
    print("READY", os.getpid(), 0, flush=True)
time.sleep(180)
os._exit(0)
