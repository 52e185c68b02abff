"""anyio: a worker that is asked to stop while it finishes something shielded makes the event loop spin."""

import asyncio
import json
import os
import sys
import time


async def job(length):
    import anyio

    async def flush():
        with anyio.CancelScope(shield=True):
            await anyio.sleep(length)

    with anyio.move_on_after(0.1):
        async with anyio.create_task_group() as group:
            group.start_soon(flush)


async def app(seconds):
    print("READY", os.getpid(), flush=True)
    end = time.monotonic() + seconds
    used = time.process_time()
    jobs = 0
    while time.monotonic() < end:
        await job(2.5)
        jobs += 1
    share = (time.process_time() - used) / seconds
    print(json.dumps({"bug": share > 0.1, "jobs": jobs, "cpu_share": round(share, 3)}), flush=True)


asyncio.run(app(float((sys.argv[1:] or ["10"])[0])))
