"""Requests whose dependency takes a connection of a small pool in a worker thread, and gives it back in one."""

import asyncio
import threading

from fastapi import Depends, FastAPI

pool = threading.BoundedSemaphore(4)
app = FastAPI()


def connection():
    pool.acquire()
    try:
        yield "connection"
    finally:
        pool.release()


@app.get("/item")
async def item(one=Depends(connection)):
    await asyncio.sleep(0.01)
    return one


async def get():
    """One request as a server hands it over."""
    scope = {"type": "http", "method": "GET", "path": "/item", "query_string": b"", "headers": []}
    status = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        status.append(message.get("status"))

    await app(scope, receive, send)
    return status[0]
