"""A plain asyncio HTTP server, as people write them without a framework."""

import asyncio
import sys
import urllib.parse

import plan


async def answer(truth, path):
    url = urllib.parse.urlsplit(path)
    if url.path == "/work":
        query = urllib.parse.parse_qs(url.query)
        await truth.work(query["kind"][0], int(query["ms"][0]))
    return b"ok"


async def handle_connection(truth, reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            body = await answer(truth, head.split(b" ", 2)[1].decode())
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            if b"connection: close" in head.lower():
                break
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    truth = plan.Truth(plan.parse(sys.argv[1:]))
    server = await asyncio.start_server(lambda reader, writer: handle_connection(truth, reader, writer), "127.0.0.1", 0)
    await plan.run(truth, server.sockets[0].getsockname()[1])
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
