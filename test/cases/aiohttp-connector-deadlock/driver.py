"""aiohttp's client: a request that times out just as it is given a slot of the pool takes the slot's wake-up with it."""

import asyncio
import json
import os
import subprocess
import sys
import time


def peer():
    async def answer(reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(run())


async def app(seconds):
    import aiohttp

    process = subprocess.Popen([sys.executable, __file__, "peer"], stdout=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{int(process.stdout.readline())}/"
    end = time.monotonic() + seconds
    last = time.monotonic()
    ok = cancelled = 0
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:

        async def get(other):
            nonlocal ok, last
            async with session.get(url) as response:
                await response.read()
            ok += 1
            last = time.monotonic()
            # Of two that ask for the same the first answer is enough.
            other().cancel()

        async def user():
            nonlocal cancelled
            while time.monotonic() < end:
                pair = []
                pair.append(asyncio.create_task(get(lambda: pair[1])))
                pair.append(asyncio.create_task(get(lambda: pair[0])))
                await asyncio.wait(pair)
                cancelled += sum(one.cancelled() for one in pair)

        print("READY", os.getpid(), flush=True)
        users = [asyncio.create_task(user()) for _ in range(4)]
        await asyncio.wait(users, timeout=seconds)
        silent = time.monotonic() - last
        print(json.dumps({"bug": silent > seconds / 3, "ok": ok, "cancelled": cancelled, "silent_s": round(silent, 1)}), flush=True)
        process.kill()
        os._exit(0)


if sys.argv[1:2] == ["peer"]:
    peer()
else:
    asyncio.run(app(float((sys.argv[1:] or ["10"])[0])))
