"""`leak`: fifty tasks more each second that nobody ends, by the clock; `pool`: as many workers as at first, and work that comes and goes."""
import asyncio
import os
import sys
import threading
import time


async def forgotten(gate):
    await gate.wait()


async def worker(queue):
    while True:
        await asyncio.sleep(await queue.get())


async def main(kind):
    gate, queue, keep = asyncio.Event(), asyncio.Queue(), []
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    loop = asyncio.get_running_loop()
    keep += [loop.create_task(worker(queue)) for _ in range(20)]
    print("READY %d 0" % os.getpid(), flush=True)
    began = time.monotonic()
    leaked = 0
    while True:
        await asyncio.sleep(0.05)
        if kind == "leak":
            while leaked < (time.monotonic() - began) * 50:
                keep.append(loop.create_task(forgotten(gate)))
                leaked += 1
        else:
            queue.put_nowait(0.01)


asyncio.run(main(sys.argv[1]))
