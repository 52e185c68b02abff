"""CPython: threads that nobody joins leave their locks behind."""

import json
import os
import sys
import threading
import time


def main(seconds):
    done = 0

    def work():
        nonlocal done
        done += 1

    print("READY", os.getpid(), flush=True)
    before = len(threading._shutdown_locks)
    end = time.monotonic() + seconds
    started = 0
    while time.monotonic() < end:
        for _ in range(20):
            threading.Thread(target=work).start()
            started += 1
        time.sleep(0.005)
    left = len(threading._shutdown_locks) - before
    print(json.dumps({"bug": left > started / 2, "threads": started, "locks_left": left}), flush=True)


main(float((sys.argv[1:] or ["10"])[0]))
