"""A program that loses something, for the tests of growth: `leaking.py file|socket|thread|memory|arrays|ring|nothing <a second>`.

What is opened is kept (file), closed by the other side alone (socket), started and left waiting (thread), remembered (memory: 64 KiB each;
arrays: as much, in memory that is no Python object; ring: the same, of which the last 100 are kept),
or closed as it should be (nothing). `<what>-waves` does it in waves of 20 s, as load does, and computes as much as it loses.
"""

import ctypes
import math
import os
import socket
import sys
import threading
import time

what, _, waves = sys.argv[1].partition("-")
rate = float(sys.argv[2])
held = []
listener = socket.create_server(("127.0.0.1", 0), backlog=16)


def closed_by_peer():
    """A connection that the server has closed and the client still holds: CLOSE_WAIT."""
    client = socket.create_connection(listener.getsockname())
    accepted, _ = listener.accept()
    accepted.close()
    return client


def lose():
    if what == "file":
        held.append(os.open(os.devnull, os.O_RDONLY))
    elif what == "socket":
        held.append(closed_by_peer())
    elif what == "thread":
        thread = threading.Thread(target=threading.Event().wait, daemon=True)
        thread.start()
        held.append(thread)
    elif what in ("arrays", "ring"):
        held.append(Frame(65536))
        if what == "ring":
            del held[:-100]
    elif what == "memory":
        held.append(os.urandom(65536))
        compute()
    else:
        os.close(os.open(os.devnull, os.O_RDONLY))
        closed_by_peer().close()


class Frame:
    """A small object that stands for memory of a library, as an array or an image does."""

    def __init__(self, size):
        self.buffer = ctypes.create_string_buffer(size)
        self.buffer[0:size:4096] = b"x" * (size // 4096)


def compute():
    """What a request costs: some milliseconds."""
    return sum(number * number for number in range(30000))


def due(seconds):
    """How many should be lost by now: evenly, or in waves between nothing and twice the rate."""
    if not waves:
        return seconds * rate
    return rate * (seconds - 20 / (2 * math.pi) * math.sin(2 * math.pi * seconds / 20))


print("up", flush=True)
begin = time.monotonic()
lost = 0
while True:
    while lost < due(time.monotonic() - begin):
        lost += 1
        lose()
    time.sleep(0.01)
