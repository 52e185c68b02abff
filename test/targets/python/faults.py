"""The blocking calls that services really make on their event loop, each in a function of its own so that a stack can name it.

Every one takes a nominal duration in milliseconds; what it really took is measured by the caller (plan.py).
"""

import os
import subprocess
import tempfile
import time
import urllib.request

HELPER_PORT = 0


def blocking_spin(ms):
    """Computes until this thread has used so much CPU time: a tokenizer, a JSON of 50 MB, a regular expression."""
    end = time.thread_time_ns() + ms * 1_000_000
    total = 0
    while time.thread_time_ns() < end:
        for number in range(200):
            total += number * number
    return total


def blocking_sleep(ms):
    """``time.sleep`` where ``await asyncio.sleep`` was meant."""
    time.sleep(ms / 1000)


def blocking_file(ms):
    """Writes and syncs a file, as a log handler or a cache does."""
    end = time.monotonic_ns() + ms * 1_000_000
    block = b"x" * 65536
    with tempfile.TemporaryFile() as file:
        while time.monotonic_ns() < end:
            file.seek(0)
            file.write(block)
            file.flush()
            os.fsync(file.fileno())


def blocking_http(ms):
    """A synchronous HTTP client inside a coroutine; the helper server answers after ``ms``."""
    with urllib.request.urlopen("http://127.0.0.1:%d/%d" % (HELPER_PORT, ms)) as answer:
        answer.read()


def blocking_exec(ms):
    """Waits for a child process."""
    subprocess.run(["sleep", "%.3f" % (ms / 1000)], check=True)


KINDS = {
    "spin": blocking_spin,
    "sleep": blocking_sleep,
    "file": blocking_file,
    "http": blocking_http,
    "exec": blocking_exec,
}
