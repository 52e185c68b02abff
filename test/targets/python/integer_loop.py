"""How much work this process gets done: one JSON line a tenth of a second with the work and the CPU time of the window.

``--shape loop`` does it in asyncio callbacks of about a millisecond, so that a watcher reads the loop at its usual pace;
``--shape plain`` is one endless function, which a watcher samples as often as it ever does.
"""

import argparse
import asyncio
import json
import os
import time

WINDOW_S = 0.1
CHUNK = 20_000


def integer_work():
    total = 0
    for number in range(CHUNK):
        total = (total + number * 7) & 0xFFFF
    return total


class Windows:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds
        self.begin()

    def begin(self):
        self.chunks = 0
        self.start = time.monotonic_ns()
        self.cpu = time.thread_time_ns()

    def step(self):
        """One chunk; false when the time is up."""
        integer_work()
        self.chunks += 1
        now = time.monotonic_ns()
        if now - self.start >= WINDOW_S * 1e9:
            print(json.dumps({"start_ns": self.start, "end_ns": now, "cpu_ns": time.thread_time_ns() - self.cpu, "work": self.chunks}), flush=True)
            self.begin()
        return time.monotonic() < self.end


async def looped(windows):
    while windows.step():
        await asyncio.sleep(0)


def plain(windows):
    while windows.step():
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=["loop", "plain"], default="loop")
    parser.add_argument("--seconds", type=float, default=20)
    arguments = parser.parse_args()
    print("READY %d 0" % os.getpid(), flush=True)
    if arguments.shape == "loop":
        asyncio.run(looped(Windows(arguments.seconds)))
    else:
        plain(Windows(arguments.seconds))
