"""Starts a thread that nobody joins."""

import threading


def start():
    ended = threading.Event()
    # Said, because a thread takes it from the one that starts it.
    threading.Thread(target=ended.set, daemon=False).start()
    ended.wait()
