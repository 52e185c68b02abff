"""aiohttp with a cache whose entries end by time, and a task that sweeps it."""

import asyncio
import sys
import time

import common


async def main():
    from aiohttp import web

    cache = {}

    async def item(request):
        key = request.match_info["key"]
        held = cache.get(key)
        if held is None or held[0] < time.monotonic():
            await asyncio.sleep(0.002)
            held = cache[key] = (time.monotonic() + 5, "x" * 500)
        return web.json_response({"key": key, "text": held[1]})

    async def sweep():
        while True:
            await asyncio.sleep(1)
            for key in [key for key, (until, _) in cache.items() if until < time.monotonic()]:
                del cache[key]

    app = web.Application()
    app.router.add_get("/items/{key}", item)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sweeping = asyncio.create_task(sweep())
    await common.run(__file__, site._server.sockets[0].getsockname()[1])
    sweeping.cancel()


if sys.argv[1] == "load":
    asyncio.run(common.http_load(["/items/{}", "/items/a"]))
else:
    asyncio.run(main())
