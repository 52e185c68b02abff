"""Holds its event loop 120 ms at a time. Argument: which loop."""

import asyncio
import os
import sys
import time


def hold_loop():
    end = time.monotonic() + 0.12
    while time.monotonic() < end:
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
