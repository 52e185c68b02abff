"""A process that does not stay what it is: it forks, or becomes another image of itself, again and again; or it waits to be killed.

Usage: restless.py forking|exec|calm [generation]
Its tasks, threads and objects are the same in each image: a reading that mixes two of them would not show them.
"""
import asyncio
import os
import sys
import threading
import time

MODE = sys.argv[1]
GENERATION = int(sys.argv[2]) if len(sys.argv) > 2 else 0
TASKS, OBJECTS = 50, 20_000
LIFE_S = 0.4


class Entry:
    def __init__(self, number):
        self.number = number


entries = {}


def crunch(count):
    total = 0
    for number in range(count):
        total += number % 7
    return total


async def waits(event):
    await event.wait()


async def works():
    while True:
        crunch(20_000)
        await asyncio.sleep(0.001)


async def forks():
    while True:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        await asyncio.sleep(0.002)


async def becomes():
    await asyncio.sleep(LIFE_S)
    # The output stays open, the pid and the start time of the process are what they were.
    os.execv(sys.executable, [sys.executable, __file__, MODE, str(GENERATION + 1)])


async def main():
    loop = asyncio.get_running_loop()
    for number in range(OBJECTS):
        entries[number] = Entry(number)
    event = asyncio.Event()
    keep = [loop.create_task(waits(event)) for _ in range(TASKS)]
    keep.append(loop.create_task(works()))
    if MODE != "calm":
        keep.append(loop.create_task(forks() if MODE == "forking" else becomes()))
    threading.Thread(target=time.sleep, args=(7200,), name="sleeper", daemon=True).start()
    if GENERATION == 0:
        print("READY %d 0" % os.getpid(), flush=True)
    while True:
        await asyncio.sleep(0.5)
        print("LIVES %d %s" % (GENERATION, all(e.number == n for n, e in entries.items())), flush=True)


asyncio.run(main())
