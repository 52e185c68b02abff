"""Tasks that wait for tasks: root() gathers branch(), which awaits a task of leaf(), which burns CPU. No stack of a thread holds all three."""

import asyncio
import os
import sys
import threading
import time


def burn():
    end = time.perf_counter() + 0.02
    total = 0
    while time.perf_counter() < end:
        total += 1
    return total


async def leaf():
    burn()
    await asyncio.sleep(0)


async def branch():
    await asyncio.create_task(leaf())


async def root():
    while True:
        await asyncio.gather(branch(), branch())


def end_with_input():
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with_input, daemon=True).start()
    print(f"READY {os.getpid()} 0", flush=True)
    asyncio.run(root())
