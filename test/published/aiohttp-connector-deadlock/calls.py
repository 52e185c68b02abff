"""Two requests for the same thing through a pool of one connection: the first answer is enough, the other is cancelled."""

import asyncio

import aiohttp


async def answer(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


class Client:
    def __init__(self, server):
        self.server = server
        port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/"
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1))

    async def get(self):
        async with self.session.get(self.url) as response:
            return await response.text()


async def connect():
    return Client(await asyncio.start_server(answer, "127.0.0.1", 0))


async def first_of_two(client):
    pair = [asyncio.ensure_future(client.get()) for _ in range(2)]
    for one, other in (pair, pair[::-1]):
        one.add_done_callback(lambda _, other=other: other.cancel())
    await asyncio.wait(pair)
