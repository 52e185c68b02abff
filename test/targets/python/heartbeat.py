"""A loop with nothing to do but to say how late it wakes: one JSON line a quarter of a second with every delay of its 1 ms timer."""

import asyncio
import json
import os
import sys
import time

INTERVAL_NS = 1_000_000
WINDOW_NS = 250_000_000


async def main(seconds):
    end = time.monotonic() + seconds
    start, late = time.monotonic_ns(), []
    while time.monotonic() < end:
        before = time.monotonic_ns()
        await asyncio.sleep(INTERVAL_NS / 1e9)
        now = time.monotonic_ns()
        late.append((now - before - INTERVAL_NS) // 1000)
        if now - start >= WINDOW_NS:
            print(json.dumps({"start_ns": start, "end_ns": now, "late_us": late}), flush=True)
            start, late = time.monotonic_ns(), []


print("READY %d 0" % os.getpid(), flush=True)
asyncio.run(main(float(sys.argv[1])))
