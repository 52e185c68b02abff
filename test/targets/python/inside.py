"""One asyncio program with all that tools look for inside a process: `inside.py [monitor]`.

Twenty suspended requests (handle_request -> load_user -> run_query, which waits for an event), one report that gathers three of them, a cache
that grows by 20,000 entries a second and is never emptied (`_store`), and a thread `crunch` that computes without a pause. A line on standard
input is answered with how late the event loop was at most since the last one. `monitor` starts aiomonitor inside; the port of its web
page is printed.
"""

import asyncio
import contextlib
import os
import sys
import threading
import time

ENTRIES_A_TURN = 100
TURN_S = 0.005
REQUESTS = 20

_store = {}
worst = 0.0


class Entry:
    def __init__(self, number):
        self.number = number


def remember():
    for _ in range(ENTRIES_A_TURN):
        number = len(_store)
        _store[number] = Entry(number)


async def grow():
    global worst
    while True:
        remember()
        due = time.perf_counter() + TURN_S
        await asyncio.sleep(TURN_S)
        worst = max(worst, time.perf_counter() - due)


async def run_query(event):
    await event.wait()


async def load_user(event):
    await run_query(event)


async def handle_request(event):
    await load_user(event)


async def make_report(requests):
    await asyncio.gather(*requests)


def compute():
    total = 0
    while True:
        for number in range(20000):
            total += number * number


def answer():
    global worst
    if not sys.stdin.readline():
        os._exit(0)
    print(f"LATE {worst:.6f}", flush=True)
    worst = 0.0


async def main():
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    requests = [loop.create_task(handle_request(event), name=f"request-{i}") for i in range(REQUESTS)]
    report = loop.create_task(make_report(requests[:3]), name="report")
    growing = loop.create_task(grow(), name="growing")
    loop.add_reader(sys.stdin, answer)
    with contextlib.ExitStack() as stack:
        port = 0
        if sys.argv[1:] == ["monitor"]:
            import aiomonitor
            import socket

            def free():
                with socket.create_server(("127.0.0.1", 0)) as one:
                    return one.getsockname()[1]

            port = free()
            ports = {"port": free(), "webui_port": port, "console_port": free()}
            stack.enter_context(aiomonitor.start_monitor(loop, **ports))
        threading.Thread(target=compute, name="crunch", daemon=True).start()
        print(f"READY {os.getpid()} {port}", flush=True)
        await asyncio.gather(report, growing)


asyncio.run(main())
