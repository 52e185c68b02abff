"""A process that declares GIB of its memory to be its environment, as anybody's process may (PR_SET_MM_MAP, no right needed); ENTRIES stand
at its beginning, separated by commas. Says `up`, or why the kernel did not take it.

Usage: long_environ.py GIB ENTRIES
"""
import ctypes
import mmap
import struct
import sys
import time

PR_SET_MM, PR_SET_MM_MAP = 35, 14
LENGTH = int(sys.argv[1]) << 30
# Not reserved: the pages that nobody reads or writes are nowhere.
FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.sbrk.restype = ctypes.c_void_p
block = libc.mmap(None, LENGTH, mmap.PROT_READ | mmap.PROT_WRITE, FLAGS, -1, 0)
if block in (None, 2**64 - 1):
    print("no memory", flush=True)
    sys.exit(1)
entries = sys.argv[2].encode().replace(b",", b"\0") + b"\0"
ctypes.memmove(block, entries, len(entries))
with open("/proc/self/stat") as file:
    fields = file.read().rpartition(")")[2].split()


def field(number):
    """By its number in proc(5); the first behind the name is the third."""
    return int(fields[number - 3])


# struct prctl_mm_map: where code, data, heap, stack, arguments and environment lie; no other auxiliary vector, no other executable.
places = struct.pack(
    "11QQII",
    *(field(26), field(27), field(45), field(46), field(47), libc.sbrk(0), field(28)),
    *(field(48), field(49), block, block + LENGTH),
    *(0, 0, 2**32 - 1),
)
failed = libc.prctl(PR_SET_MM, PR_SET_MM_MAP, places, len(places), 0)
print(f"errno {ctypes.get_errno()}" if failed else "up", flush=True)
time.sleep(600)
