"""FastAPI with sessions and a cache that fills to its bound."""

import asyncio
import sys
from collections import OrderedDict

import common


async def main():
    import uvicorn
    from fastapi import FastAPI, Request
    from starlette.middleware.sessions import SessionMiddleware

    app = FastAPI()
    app.add_middleware(SessionMiddleware, secret_key="not a secret")
    cache = OrderedDict()

    @app.get("/items/{number}")
    async def item(number: int, request: Request):
        request.session["seen"] = request.session.get("seen", 0) + 1
        if number not in cache:
            await asyncio.sleep(0.002)
            cache[number] = {"number": number, "text": "x" * 500}
            if len(cache) > 1000:
                cache.popitem(last=False)
        return cache[number]

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    await common.run(__file__, server.servers[0].sockets[0].getsockname()[1])
    serving.cancel()


if sys.argv[1] == "load":
    asyncio.run(common.http_load(["/items/{}", "/items/1"]))
else:
    asyncio.run(main())
