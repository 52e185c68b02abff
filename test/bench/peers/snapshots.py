"""Run by the interpreter as sitecustomize: two snapshots of tracemalloc, and where what came between them was allocated."""
import os
import sys
import threading
import time
import tracemalloc


def compare(path, first, second):
    time.sleep(first)
    before = tracemalloc.take_snapshot()
    time.sleep(second)
    after = tracemalloc.take_snapshot()
    with open(path, "w") as out:
        for one in after.compare_to(before, "traceback")[:5]:
            if one.size_diff > 0:
                print("%+d bytes" % one.size_diff, *reversed(one.traceback.format()), sep="\n", file=out)


# Not in the driver's own peers, which have arguments that are no number.
if os.environ.get("SNAPSHOTS") and len(sys.orig_argv) and sys.orig_argv[-1].isdigit():
    threading.Thread(target=compare, args=(os.environ["SNAPSHOTS"], 8, 14), daemon=True).start()
