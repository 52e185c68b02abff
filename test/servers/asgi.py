"""The application that gunicorn's uvicorn workers serve: `/` is healthy, `/fault/<kind>` blocks the loop, `/leak/<kind>` loses something."""

import asyncio
import json
import urllib.parse

import shared


async def handle_root():
    await asyncio.sleep(0.002)
    return shared.answer()


async def handle_fault(kind, ms):
    shared.faults.KINDS[kind](ms)
    return {"ok": True}


async def handle_leak(kind):
    shared.LEAKS[kind]()
    return {"ok": True}


async def app(scope, receive, send):
    assert scope["type"] == "http"
    _, *path = scope["path"].split("/")
    query = urllib.parse.parse_qs(scope["query_string"].decode())
    if path[0] == "fault":
        body = await handle_fault(path[1], int(query["ms"][0]))
    elif path[0] == "leak":
        body = await handle_leak(path[1])
    else:
        body = await handle_root()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
