"""aiohttp as deployed: `/` is healthy, `/fault/<kind>` blocks the loop, `/leak/<kind>` loses something at every request."""

import asyncio
import logging
import os

from aiohttp import web

import shared

logging.basicConfig(level=logging.WARNING)


async def handle_root(request):
    await asyncio.sleep(0.002)
    return web.json_response(shared.answer())


async def handle_fault(request):
    shared.faults.KINDS[request.match_info["kind"]](int(request.query["ms"]))
    return web.json_response({"ok": True})


async def handle_leak(request):
    shared.LEAKS[request.match_info["kind"]]()
    return web.json_response({"ok": True})


async def main():
    app = web.Application()
    app.add_routes([web.get("/", handle_root), web.get("/fault/{kind}", handle_fault), web.get("/leak/{kind}", handle_leak)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print("READY", os.getpid(), runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
