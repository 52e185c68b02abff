"""What the healthy programs share: `program SECONDS idle|loaded PLANT_EVERY`, the planted block, and clients in a process of their own."""

import asyncio
import os
import subprocess
import sys
import time

IS_PROGRAM = sys.argv[2:3] in (["idle"], ["loaded"])
SECONDS = float(sys.argv[1]) if IS_PROGRAM else 0
LOADED = sys.argv[2:3] == ["loaded"]
PLANT_EVERY = float(sys.argv[3]) if IS_PROGRAM else 60


def planted_block():
    time.sleep(0.06)


async def plant():
    """One real block of 60 ms every PLANT_EVERY seconds."""
    while True:
        await asyncio.sleep(PLANT_EVERY)
        planted_block()


def start_load(program, port):
    """The program's own `load PORT SECONDS RATE` as a process; a request a second where it is idle."""
    rate = 60 if LOADED else 1
    return subprocess.Popen([sys.executable, program, "load", str(port), str(SECONDS), str(rate)])


async def run(program, port):
    """Says READY, plants, and ends the process after its time."""
    peer = start_load(program, port)
    planting = asyncio.create_task(plant())
    print("READY", os.getpid(), port, flush=True)
    await asyncio.sleep(SECONDS)
    planting.cancel()
    peer.kill()
    os._exit(0)


async def http_load(paths):
    """Four connections that ask for these paths in turn, each a browser with cookies of its own."""
    port, seconds, rate = int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    end = time.monotonic() + seconds

    async def browser(number):
        cookies = [""] * 50
        count = number
        while time.monotonic() < end:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                for _ in range(100):
                    who = count % len(cookies)
                    path = paths[count % len(paths)].format(count)
                    cookie = f"cookie: {cookies[who]}\r\n" if cookies[who] else ""
                    writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\n{cookie}\r\n".encode())
                    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                    await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
                    if "set-cookie:" in head:
                        cookies[who] = head.split("set-cookie:")[1].split(";")[0].strip()
                    count += 1
                    await asyncio.sleep(4 / rate)
                writer.close()
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.2)

    await asyncio.gather(*(browser(number) for number in range(4)))
