"""A proxy in front of a database, with a pool of connections to it: messages with a type and a length, as PostgreSQL has them."""

import asyncio
import struct
import sys
import time

import common

POOL = 5


async def read_message(reader):
    head = await reader.readexactly(5)
    return head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)


def message(kind, body):
    return kind + struct.pack("!I", len(body) + 4) + body


async def load():
    port, seconds, rate = int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    end = time.monotonic() + seconds

    async def client():
        while time.monotonic() < end:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(20):
                writer.write(message(b"Q", b"select 1"))
                await read_message(reader)
                await asyncio.sleep(8 / rate)
            writer.close()

    await asyncio.gather(*(client() for _ in range(8)))


async def database():
    async def serve(reader, writer):
        try:
            while await read_message(reader):
                await asyncio.sleep(0.003)
                writer.write(message(b"D", b"x" * 200))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.sleep(float(sys.argv[2]))


async def main():
    command = [sys.executable, __file__, "database", str(common.SECONDS + 10)]
    behind = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    port = int(await behind.stdout.readline())
    pool = asyncio.Queue()
    for _ in range(POOL):
        pool.put_nowait(await asyncio.open_connection("127.0.0.1", port))

    async def serve(reader, writer):
        try:
            while True:
                query = await read_message(reader)
                connection = await pool.get()
                try:
                    connection[1].write(query)
                    writer.write(await read_message(connection[0]))
                finally:
                    pool.put_nowait(connection)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    await common.run(__file__, server.sockets[0].getsockname()[1])


asyncio.run({"load": load, "database": database}.get(sys.argv[1], main)())
