"""An asyncio loop that stands still for a quarter of a second every half second, for a cause named on the command line; `none`: it turns.

The causes look the same from outside: the loop does not turn.
"""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time

STALL_S = 0.25
EVERY_S = 0.5
guard = threading.Lock()


def calibrate():
    """How far a C function that keeps the GIL has to count to last so long."""
    count = 1_000_000
    while True:
        began = time.thread_time()
        sum(range(count))
        took = time.thread_time() - began
        if took > 0.03:
            return int(count * STALL_S / took)
        count *= 2


def crunch(count):
    return sum(range(count))


def keep_gil():
    count = calibrate()
    while True:
        time.sleep(EVERY_S)
        crunch(count)


def keep_lock():
    while True:
        time.sleep(EVERY_S)
        with guard:
            time.sleep(STALL_S)


def compute():
    end = time.thread_time() + STALL_S
    while time.thread_time() < end:
        sum(range(1000))


def tidy():
    end = time.thread_time() + STALL_S
    while time.thread_time() < end:
        gc.collect()


def take_lock():
    with guard:
        pass


def run_child():
    subprocess.run(["sleep", str(STALL_S)], capture_output=True, check=True)


STALLS = {
    "cpu": compute,
    "gc": tidy,
    "lock": take_lock,
    "sleep": lambda: time.sleep(STALL_S),
    "subprocess": run_child,
}
THREADS = {"gil": keep_gil, "lock": keep_lock}


async def main(cause):
    if cause in THREADS:
        threading.Thread(target=THREADS[cause], name="reindex", daemon=True).start()
    print("READY %d 0" % os.getpid(), flush=True)
    stalled = time.monotonic()
    while True:
        # A lock is asked for all the time, as by requests; the rest happens now and then.
        await asyncio.sleep(0.01)
        if cause == "lock":
            take_lock()
        elif cause in STALLS and time.monotonic() - stalled > EVERY_S:
            STALLS[cause]()
            stalled = time.monotonic()


kept = [[number] for number in range(400_000)] if sys.argv[1] == "gc" else []
asyncio.run(main(sys.argv[1]))
