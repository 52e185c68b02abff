"""A model that is still loading when it is asked the first time."""

import asyncio

# The client imports it in its first request, for a second on a busy machine: a block, but not the one that was published.
import aiohttp  # noqa: F401
from huggingface_hub import AsyncInferenceClient

LOADING = b'{"error": "loading", "estimated_time": 1.5}'


class Endpoint:
    def __init__(self):
        self.asked = 0

    async def answer(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            self.asked += 1
            status, body = (b"503 Busy", LOADING) if self.asked == 1 else (b"200 OK", b"{}")
            head = b"HTTP/1.1 %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            writer.write(head % (status, len(body)) + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def ask():
    server = await asyncio.start_server(Endpoint().answer, "127.0.0.1", 0)
    url = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
    answer = await AsyncInferenceClient(url, timeout=30).post(json={"inputs": "x"}, model=url)
    server.close()
    return answer.decode()
