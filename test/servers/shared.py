"""What the Python servers have in common: the blocking calls of test/targets, what can be lost at a request, a healthy answer."""

import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "targets", "python"))

import faults  # noqa: E402

__all__ = ["LEAKS", "answer", "faults"]

held = []


def answer():
    return {"items": [{"id": number, "name": "item %d" % number, "tags": ["a", "b"]} for number in range(20)]}


def leaking_descriptor():
    held.append(os.open(os.devnull, os.O_RDONLY))


def leaking_thread():
    """A thread that waits for what nobody will tell it."""
    thread = threading.Thread(target=threading.Event().wait, name="consumer-%d" % len(held), daemon=True)
    thread.start()
    held.append(thread)


listener = socket.create_server(("127.0.0.1", 0), backlog=64)


def leaking_socket():
    """A client's connection that is kept after the server has closed it."""
    client = socket.create_connection(listener.getsockname())
    accepted, _ = listener.accept()
    accepted.close()
    held.append(client)


def leaking_memory():
    """64 KiB that stay: a response kept in a list."""
    held.append(bytearray(os.urandom(1024) * 64))


LEAKS = {"fd": leaking_descriptor, "thread": leaking_thread, "socket": leaking_socket, "memory": leaking_memory}
