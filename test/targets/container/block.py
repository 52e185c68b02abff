"""Holds its event loop for 120 ms of CPU time, again and again. Argument: which loop."""

import asyncio
import os
import sys
import time


def hold_loop():
    end = time.thread_time() + 0.12
    while time.thread_time() < end:
        pass


async def main():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    print("READY", os.getpid(), server.sockets[0].getsockname()[1], flush=True)
    while True:
        await asyncio.sleep(0.3)
        hold_loop()


if sys.argv[1] == "uvloop":
    import uvloop

    uvloop.install()
asyncio.run(main())
