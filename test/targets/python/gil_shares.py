"""Three named threads that compute without a pause and share the GIL, and one that sleeps and hardly ever wants it."""

import os
import threading
import time


def compute():
    while True:
        sum(range(50))


def rest():
    while True:
        time.sleep(0.05)


for name in ("tokenize", "rank", "render"):
    threading.Thread(target=compute, name=name, daemon=True).start()
threading.Thread(target=rest, name="heartbeat", daemon=True).start()
print("READY %d 0" % os.getpid(), flush=True)
threading.Event().wait()
