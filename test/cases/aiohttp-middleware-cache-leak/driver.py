"""aiohttp's server keeps something of every request whose method is not allowed, where there are middlewares."""

import asyncio
import gc
import json
import os
import subprocess
import sys
import time


async def load(port, seconds):
    end = time.monotonic() + seconds
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count = 0
    while time.monotonic() < end:
        writer.write(b"POST /item HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        count += 1
        await asyncio.sleep(0.0005)
    print(count)


async def serve(seconds):
    from aiohttp import web

    @web.middleware
    async def passing(request, handler):
        return await handler(request)

    async def item(request):
        return web.Response(text="ok")

    app = web.Application(middlewares=[passing])
    app.router.add_get("/item", item)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    gc.collect()
    before = len(gc.get_objects())
    command = [sys.executable, __file__, "load", str(port), str(seconds)]
    peer = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    print("READY", os.getpid(), port, flush=True)
    requests = int((await peer.communicate())[0])
    gc.collect()
    growth = len(gc.get_objects()) - before
    print(json.dumps({"bug": growth > requests, "requests": requests, "object_growth": growth}), flush=True)
    os._exit(0)


if sys.argv[1:2] == ["load"]:
    asyncio.run(load(int(sys.argv[2]), float(sys.argv[3])))
else:
    asyncio.run(serve(float((sys.argv[1:] or ["10"])[0])))
