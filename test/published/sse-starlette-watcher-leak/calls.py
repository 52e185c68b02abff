"""A stream of three events, from its first to its last, as a server hands it over."""

import asyncio
import contextvars

from sse_starlette.sse import EventSourceResponse


async def events():
    for number in range(3):
        yield {"data": number}


async def respond():
    async def receive():
        await asyncio.sleep(3600)

    async def send(message):
        pass

    await EventSourceResponse(events())({"type": "http"}, receive, send)


async def stream():
    """Each connection has a context of its own, as that of a server's."""
    await asyncio.get_running_loop().create_task(respond())
