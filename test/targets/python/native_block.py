"""A thread that derives keys in C ("native"), or computes in Python ("python"), and one that sleeps in libc through ctypes."""

import ctypes
import hashlib
import os
import sys
import threading


def derive():
    while True:
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 200_000)


def compute():
    total = 0
    while True:
        total = (total * 31 + 7) % 1_000_003


def sleep_in_libc():
    libc = ctypes.CDLL(None)
    while True:
        libc.usleep(100_000)


if __name__ == "__main__":
    work = derive if sys.argv[1] == "native" else compute
    threading.Thread(target=work, name="worker", daemon=True).start()
    threading.Thread(target=sleep_in_libc, name="sleeper", daemon=True).start()
    print(f"READY {os.getpid()} 0", flush=True)
    # Ends with whoever started it.
    sys.stdin.read()
