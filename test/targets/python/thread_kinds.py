"""Threads that wait for one thing each, for as long as it runs: prints READY and its pid, then a port of its own that one of them reads from."""

import os
import queue
import socket
import subprocess
import sys
import threading
import time

guard = threading.Lock()
jobs = queue.Queue()
server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]


def keep():
    with guard:
        time.sleep(1000)


def want():
    with guard:
        pass


def take():
    jobs.get()


def fetch():
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.recv(1)


def wait_for_child():
    # Ends when this process does, which closes the pipe.
    subprocess.Popen(["cat"], stdin=subprocess.PIPE).wait()


def compute(count):
    while True:
        sum(range(count))


def start(name, function, *arguments):
    threading.Thread(target=function, args=arguments, name=name, daemon=True).start()


start("keeper", keep)
time.sleep(0.2)
for name, function in (("wanter", want), ("taker", take), ("fetcher", fetch), ("parent", wait_for_child)):
    start(name, function)
for name in sys.argv[1:]:
    # Each call keeps the GIL for long: the others are found waiting for it.
    start(name, compute, 10_000_000)
time.sleep(0.3)
print("READY %d %d" % (os.getpid(), port), flush=True)
time.sleep(1000)
