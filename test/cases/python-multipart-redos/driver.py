"""python-multipart: a Content-Type header with a run of backslashes keeps the event loop busy while its options are matched."""

import asyncio
import json
import os
import subprocess
import sys
import time


async def load(port, seconds):
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        hostile = count % 5 == 4
        value = '!="' + "\\" * 34 if hostile else "boundary=x"
        writer.write(f"POST / HTTP/1.1\r\ncontent-type: multipart/form-data; {value}\r\n\r\n".encode())
        await reader.read()
        writer.close()
        count += 1
        await asyncio.sleep(0.1)


async def serve(seconds):
    try:
        from python_multipart.multipart import parse_options_header
    except ImportError:
        from multipart.multipart import parse_options_header
    longest = 0.0

    async def answer(reader, writer):
        nonlocal longest
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        header = head.split("content-type: ")[1].split("\r\n")[0]
        before = time.thread_time()
        parse_options_header(header)
        longest = max(longest, time.thread_time() - before)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    peer = subprocess.Popen([sys.executable, __file__, "load", str(port), str(seconds)])
    print("READY", os.getpid(), port, flush=True)
    await asyncio.sleep(seconds)
    peer.kill()
    print(json.dumps({"bug": longest > 0.05, "longest_cpu_s": round(longest, 3)}), flush=True)


if sys.argv[1:2] == ["load"]:
    asyncio.run(load(int(sys.argv[2]), float(sys.argv[3])))
else:
    asyncio.run(serve(float((sys.argv[1:] or ["10"])[0])))
