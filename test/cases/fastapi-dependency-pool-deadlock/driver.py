"""FastAPI: requests that wait for a connection in worker threads keep the one that has it from giving it back."""

import asyncio
import json
import os
import queue
import subprocess
import sys
import time

USERS = 70
CONNECTIONS = 5


async def load(port, seconds):
    end = time.monotonic() + seconds
    answered = []

    async def user():
        while time.monotonic() < end:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET /rows HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                if b" 200 " in await asyncio.wait_for(reader.read(), max(0.1, end - time.monotonic())):
                    answered.append(time.monotonic())
                writer.close()
            except (asyncio.TimeoutError, OSError):
                pass

    await asyncio.gather(*(user() for _ in range(USERS)))
    print(time.monotonic() - max(answered, default=end - seconds))


async def serve(seconds):
    import uvicorn
    from fastapi import Depends, FastAPI

    pool = queue.Queue()
    for number in range(CONNECTIONS):
        pool.put(number)

    def connection():
        one = pool.get()
        try:
            yield one
        finally:
            pool.put(one)

    app = FastAPI()

    @app.get("/rows")
    async def rows(one=Depends(connection)):
        await asyncio.sleep(0.02)
        return one

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    command = [sys.executable, __file__, "load", str(port), str(seconds)]
    peer = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    print("READY", os.getpid(), port, flush=True)
    silent = float((await peer.communicate())[0])
    print(json.dumps({"bug": silent > seconds / 2, "silent_s": round(silent, 1)}), flush=True)
    serving.cancel()
    os._exit(0)


if sys.argv[1:2] == ["load"]:
    asyncio.run(load(int(sys.argv[2]), float(sys.argv[3])))
else:
    asyncio.run(serve(float((sys.argv[1:] or ["10"])[0])))
