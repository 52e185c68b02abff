"""Two hundred tasks that never hold still: each goes to and fro between two lines, through another function from each.

A reading that mixes two moments would find `left` under the line that calls `right`.
"""
import asyncio
import inspect
import json
import os
import sys
import threading


def here():
    return inspect.currentframe().f_back.f_lineno


lines = {}


async def left():
    await asyncio.sleep(0)


async def right():
    await asyncio.sleep(0)


async def churn():
    while True:
        lines["left"] = here() + 1
        await left()
        lines["right"] = here() + 1
        await right()


async def passing():
    while True:
        await asyncio.get_running_loop().create_task(left())


async def main():
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    keep = [asyncio.get_running_loop().create_task(churn()) for _ in range(200)]
    keep += [asyncio.get_running_loop().create_task(passing()) for _ in range(20)]
    await asyncio.sleep(0.1)
    print("READY %d 0" % os.getpid(), flush=True)
    print(json.dumps(lines), flush=True)
    await asyncio.sleep(7200)


asyncio.run(main())
