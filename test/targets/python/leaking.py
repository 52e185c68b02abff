"""A program that loses descriptors, for the tests of growth: `leaking.py file|socket|nothing <a second>`.

What is opened is kept (file), closed by the other side alone (socket), or closed as it should be (nothing).
"""

import os
import socket
import sys
import time

what, rate = sys.argv[1], float(sys.argv[2])
held = []
listener = socket.create_server(("127.0.0.1", 0), backlog=16)


def closed_by_peer():
    """A connection that the server has closed and the client still holds: CLOSE_WAIT."""
    client = socket.create_connection(listener.getsockname())
    accepted, _ = listener.accept()
    accepted.close()
    return client


print("up", flush=True)
begin = time.monotonic()
opened = 0
while True:
    while opened < (time.monotonic() - begin) * rate:
        opened += 1
        if what == "file":
            held.append(os.open(os.devnull, os.O_RDONLY))
        elif what == "socket":
            held.append(closed_by_peer())
        else:
            os.close(os.open(os.devnull, os.O_RDONLY))
            closed_by_peer().close()
    time.sleep(0.01)
