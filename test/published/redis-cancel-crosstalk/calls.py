"""Sessions that read their own key, some of them with little patience; the server is a few lines of the Redis protocol."""

import asyncio

import redis.asyncio


async def answer(reader, writer):
    try:
        while line := await reader.readline():
            words = []
            for _ in range(int(line[1:])):
                size = int((await reader.readline())[1:])
                words.append((await reader.readexactly(size + 2))[:-2])
            if words[0].upper() == b"GET":
                await asyncio.sleep(0.01)
                writer.write(b"$%d\r\n%s\r\n" % (len(words[1]), words[1]))
            else:
                writer.write(b"+OK\r\n")
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def connect():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = redis.asyncio.Redis(host="127.0.0.1", port=port)
    client.served_by = server
    return client


async def read(client, key, patience):
    try:
        return await asyncio.wait_for(client.get(key), patience)
    except asyncio.TimeoutError:
        return None
