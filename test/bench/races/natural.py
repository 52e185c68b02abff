"""How often a planted race fails by itself, in fresh loops of one process: natural.py <file> <runs>."""

import asyncio
import contextlib
import runpy
import sys

# A run takes a millisecond: one that takes this long hangs.
LIMIT = 5

path, runs = sys.argv[1:]
sys.argv = [path]
main = runpy.run_path(path, run_name="race")["main"]
failed = 0
for _ in range(int(runs)):
    right = False
    with contextlib.suppress(Exception):
        right = asyncio.run(asyncio.wait_for(main(), LIMIT))
    failed += not right
print(failed)
