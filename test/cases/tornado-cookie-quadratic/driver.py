"""Tornado: a quoted cookie full of escapes takes quadratic time on the event loop."""

import asyncio
import json
import os
import subprocess
import sys
import time


def load(port, seconds):
    import http.client

    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        cookie = 'a="' + '\\"' * 12_000 + '"' if count % 5 == 4 else "a=b"
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("GET", "/", headers={"Cookie": cookie})
            connection.getresponse().read()
        except OSError:
            pass
        connection.close()
        count += 1
        time.sleep(0.1)


async def serve(seconds):
    import tornado.httpserver
    import tornado.netutil
    import tornado.web

    longest = 0.0

    class Hello(tornado.web.RequestHandler):
        def get(self):
            nonlocal longest
            before = time.thread_time()
            self.request.cookies
            longest = max(longest, time.thread_time() - before)
            self.write("ok")

    sockets = tornado.netutil.bind_sockets(0, "127.0.0.1")
    server = tornado.httpserver.HTTPServer(tornado.web.Application([("/", Hello)]))
    server.add_sockets(sockets)
    port = sockets[0].getsockname()[1]
    peer = subprocess.Popen([sys.executable, __file__, "load", str(port), str(seconds)])
    print("READY", os.getpid(), port, flush=True)
    await asyncio.sleep(seconds)
    peer.kill()
    print(json.dumps({"bug": longest > 0.05, "longest_cpu_s": round(longest, 3)}), flush=True)


if sys.argv[1:2] == ["load"]:
    load(int(sys.argv[2]), float(sys.argv[3]))
else:
    asyncio.run(serve(float((sys.argv[1:] or ["10"])[0])))
