"""A process whose main thread computes on a core that a child computes on, too, while a thread `sleeper` sleeps: `starved.py [alone]`.

`alone`: without the child, so that the main thread is starved by nobody that is ours.
"""

import os
import sys
import threading
import time


def sleep_long():
    time.sleep(3600)


def compute_on():
    total = 0
    while True:
        for number in range(20000):
            total += number


def end_with_input():
    sys.stdin.read()
    os._exit(0)


core = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {core})
if sys.argv[1:] != ["alone"]:
    parent = os.getpid()
    if os.fork() == 0:
        # Two for one: the parent gets at most half of the core.
        while os.getppid() == parent:
            sum(range(200000))
        os._exit(0)
threading.Thread(target=sleep_long, name="sleeper", daemon=True).start()
threading.Thread(target=end_with_input, name="input", daemon=True).start()
print(f"READY {os.getpid()} 0", flush=True)
compute_on()
