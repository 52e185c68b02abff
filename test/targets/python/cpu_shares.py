"""Burns CPU in known shares: hot() 75 %, warm() 25 % of the worker thread's CPU time; the main thread and another one wait."""

import os
import sys
import threading
import time

SLICE_S = 0.02


def burn(seconds):
    end = time.thread_time() + seconds
    total = 0
    while time.thread_time() < end:
        for i in range(200):
            total += i * i
    return total


def hot():
    return burn(0.75 * SLICE_S)


def warm():
    return burn(0.25 * SLICE_S)


def work():
    while True:
        hot()
        warm()


def wait_for_nothing():
    threading.Event().wait()


if __name__ == "__main__":
    threading.Thread(target=work, name="worker", daemon=True).start()
    threading.Thread(target=wait_for_nothing, name="waiter", daemon=True).start()
    print(f"READY {os.getpid()} 0", flush=True)
    # Ends with whoever started it.
    sys.stdin.read()
