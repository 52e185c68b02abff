"""A server of keys and values in the manner of Redis: lines in, lines out, keys that end by time."""

import asyncio
import sys
import time

import common


async def load():
    port, seconds, rate = int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    end = time.monotonic() + seconds

    async def client(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        count = 0
        while time.monotonic() < end:
            for command in (f"SET key{number}-{count % 2000} {'v' * 100}", f"GET key{number}-{count % 2000}"):
                writer.write(command.encode() + b"\n")
                await reader.readline()
            count += 1
            await asyncio.sleep(8 / rate / 4)

    await asyncio.gather(*(client(number) for number in range(8)))


async def main():
    values = {}

    async def serve(reader, writer):
        while line := await reader.readline():
            name, key, *rest = line.split()
            if name == b"SET":
                values[key] = (rest[0], time.monotonic() + 30)
                writer.write(b"+OK\n")
            else:
                held = values.get(key)
                writer.write((held[0] if held and held[1] > time.monotonic() else b"-") + b"\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    await common.run(__file__, server.sockets[0].getsockname()[1])


asyncio.run(load() if sys.argv[1] == "load" else main())
