"""sse-starlette: each stream of events leaves a task behind that looks twice a second whether the server shuts down."""

import asyncio
import json
import os
import subprocess
import sys
import time


async def load(port, seconds):
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /events HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        await reader.read()
        writer.close()
        count += 1
        await asyncio.sleep(0.05)
    print(count)


async def serve(seconds):
    import uvicorn
    from sse_starlette.sse import EventSourceResponse
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def events(request):
        async def few():
            for number in range(3):
                yield {"data": number}

        return EventSourceResponse(few())

    app = Starlette(routes=[Route("/events", events)])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    before = len(asyncio.all_tasks())
    command = [sys.executable, __file__, "load", str(port), str(seconds)]
    peer = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    print("READY", os.getpid(), port, flush=True)
    streams = int((await peer.communicate())[0])
    left = len(asyncio.all_tasks()) - before
    print(json.dumps({"bug": left > streams / 2, "streams": streams, "tasks_left": left}), flush=True)
    serving.cancel()
    os._exit(0)


if sys.argv[1:2] == ["load"]:
    asyncio.run(load(int(sys.argv[2]), float(sys.argv[3])))
else:
    asyncio.run(serve(float((sys.argv[1:] or ["10"])[0])))
