"""Counts the signals it gets and says so; ends with 7 a while after the first SIGINT or SIGTERM. Descriptors 1 and 2 are looked at on SIGUSR2."""

import os
import signal
import sys
import time

counts = {}


def count(number, _):
    name = signal.Signals(number).name
    counts[name] = counts.get(name, 0) + 1
    print(name, counts[name], flush=True)


for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT"):
    signal.signal(getattr(signal, name), count)
print("counting", os.getpid(), "tty" if sys.stdout.isatty() else "no tty", flush=True)
until = None
while until is None or time.monotonic() < until:
    time.sleep(0.05)
    if until is None and ("SIGINT" in counts or "SIGTERM" in counts):
        until = time.monotonic() + 0.4
sys.exit(7)
