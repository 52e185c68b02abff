"""Requests that are given up while they are under way, through a pool of two connections; a patient one must still get through."""

import asyncio

import anyio
import httpx


async def answer(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            await asyncio.sleep(0.1)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


class Client(httpx.AsyncClient):
    async def __aenter__(self):
        self.server = await asyncio.start_server(answer, "127.0.0.1", 0)
        self.url = "http://127.0.0.1:%d/" % self.server.sockets[0].getsockname()[1]
        return await super().__aenter__()


async def connect():
    return await Client(limits=httpx.Limits(max_connections=2), timeout=5).__aenter__()


async def get(client, patience):
    """Gives up so many seconds after the request is on the wire; null: never."""
    with anyio.CancelScope() as scope:

        async def on_event(event, info):
            if patience is not None and event == "http11.receive_response_headers.started":
                scope.deadline = anyio.current_time() + patience

        await client.get(client.url, extensions={"trace": on_event})
