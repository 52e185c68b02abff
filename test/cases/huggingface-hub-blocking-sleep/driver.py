"""huggingface_hub: the asynchronous client waits for a model that is still loading with time.sleep()."""

import asyncio
import json
import os
import subprocess
import sys
import time


def peer():
    """An endpoint whose model loads at two requests of three."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        count = 0

        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            Handler.count += 1
            ready = Handler.count % 3 == 0
            body = b"{}" if ready else b'{"error": "loading", "estimated_time": 1.0}'
            self.send_response(200 if ready else 503)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


async def app(seconds):
    from huggingface_hub import AsyncInferenceClient

    process = subprocess.Popen([sys.executable, __file__, "peer"], stdout=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{int(process.stdout.readline())}"
    client = AsyncInferenceClient(url, timeout=30)
    end = time.monotonic() + seconds
    longest = 0.0
    blocks = 0

    async def beat():
        nonlocal longest, blocks
        while True:
            before = time.monotonic()
            used = time.thread_time()
            await asyncio.sleep(0.02)
            # A sleep of the loop is time in which it did not compute.
            late = time.monotonic() - before - 0.02 - (time.thread_time() - used)
            longest = max(longest, late)
            blocks += late > 0.9

    async def user():
        while time.monotonic() < end:
            await client.post(json={"inputs": "x"}, model=url)
            await asyncio.sleep(0.2)

    print("READY", os.getpid(), flush=True)
    beating = asyncio.create_task(beat())
    await asyncio.wait([asyncio.create_task(user())], timeout=seconds + 2)
    beating.cancel()
    process.kill()
    print(json.dumps({"bug": blocks > seconds / 8, "blocks": blocks, "longest_s": round(longest, 2)}), flush=True)
    os._exit(0)


if sys.argv[1:2] == ["peer"]:
    peer()
else:
    asyncio.run(app(float((sys.argv[1:] or ["10"])[0])))
