"""Holds so many MiB of memory, or brings so many MiB of a file into the page cache: `hold 40`, `cache 40 /tmp/file`."""

import os
import sys
import time

how, mebibytes = sys.argv[1], int(sys.argv[2])
if how == "hold":
    held = bytearray(b"\1") * (mebibytes << 20)
else:
    with open(sys.argv[3], "wb") as file:
        for _ in range(mebibytes):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
print("READY", os.getpid(), 0, flush=True)
time.sleep(60)
