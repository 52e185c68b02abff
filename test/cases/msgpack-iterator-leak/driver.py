"""msgpack: the end of each iteration over an Unpacker leaks the exception that ended it."""

import asyncio
import json
import os
import subprocess
import sys
import time


def rss():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def load(port, seconds):
    import msgpack

    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    packet = msgpack.packb({"id": 1, "values": [1, 2, 3]}) * 4
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        writer.write(packet)
        await writer.drain()
        await reader.readexactly(4)


async def serve(seconds):
    import msgpack

    messages = 0

    async def receive(reader, writer):
        nonlocal messages
        while data := await reader.read(4096):
            unpacker = msgpack.Unpacker()
            unpacker.feed(data)
            for _ in unpacker:
                messages += 1
                writer.write(b".")
        writer.close()

    server = await asyncio.start_server(receive, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    peers = [subprocess.Popen([sys.executable, __file__, "load", str(port), str(seconds)]) for _ in range(2)]
    await asyncio.sleep(0.3)
    print("READY", os.getpid(), port, flush=True)
    before = rss()
    await asyncio.sleep(seconds)
    growth = rss() - before
    for peer in peers:
        peer.kill()
    print(json.dumps({"bug": growth > messages * 10, "messages": messages, "rss_growth": growth}), flush=True)
    os._exit(0)


if sys.argv[1:2] == ["load"]:
    asyncio.run(load(int(sys.argv[2]), float(sys.argv[3])))
else:
    asyncio.run(serve(float((sys.argv[1:] or ["10"])[0])))
