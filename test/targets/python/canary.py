"""A thread that maps, touches and unmaps memory all the time and keeps how long each round took.

Whoever holds the target's memory lock (as some readers of /proc do) makes these rounds late, so their tail tells whether
watching a process delays it. The file gets pairs of native 64-bit integers: CLOCK_MONOTONIC start and duration, nanoseconds.
"""

import array
import mmap
import threading
import time

PAGES = 16
PAGE = 4096
#: Between two rounds: 2,000 a second give 20,000 in ten seconds, enough for a p99.9.
PAUSE_S = 0.0005


def measure(path, seconds):
    rounds = array.array("q")
    end = time.monotonic() + seconds - 0.5
    while time.monotonic() < end:
        start = time.monotonic_ns()
        memory = mmap.mmap(-1, PAGES * PAGE)
        for page in range(PAGES):
            memory[page * PAGE] = 1
        memory.close()
        rounds.append(start)
        rounds.append(time.monotonic_ns() - start)
        time.sleep(PAUSE_S)
    with open(path, "wb") as file:
        rounds.tofile(file)


def start(path, seconds):
    threading.Thread(target=measure, args=(path, seconds), name="canary", daemon=True).start()
