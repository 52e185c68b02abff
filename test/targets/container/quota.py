"""Computes for so many seconds of CPU time at each turn of its loop, and pauses for so many: the two arguments."""

import asyncio
import os
import sys
import time


def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def main():
    print("READY", os.getpid(), 0, flush=True)
    while True:
        await asyncio.sleep(float(sys.argv[2]))
        compute(float(sys.argv[1]))


asyncio.run(main())
