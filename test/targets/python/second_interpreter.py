"""A program with an asyncio loop in its main interpreter, busy half of the time, and a thread that runs another interpreter: which stands
before the main one in CPython's list.
"""
import asyncio
import os
import threading
import time

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

other = interpreters.create()
run = getattr(interpreters, "exec", None) or interpreters.run_string
SCRIPT = "import time\nwhile True: time.sleep(0.05)"
threading.Thread(target=run, args=(other, SCRIPT), name="second", daemon=True).start()


async def waiting():
    await asyncio.sleep(600)


async def main():
    task = asyncio.ensure_future(waiting())
    print("READY", os.getpid(), 0, flush=True)
    while not task.done():
        time.sleep(0.05)
        await asyncio.sleep(0.05)


asyncio.run(main())
