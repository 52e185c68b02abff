"""A process with everything at once: a loop at 100 % of a core, ten thousand tasks, a million objects, five hundred threads, ten thousand
descriptors, deep recursion, generators in generators and code in C. It says what it has, and at the end whether it is still whole.

Usage: stressed.py [tasks] [objects] [threads] [descriptors]
`truth` on its input asks for what it knows of itself, `end` ends it.
"""
import asyncio
import json
import os
import resource
import sys
import threading
import time
import zlib

TASKS, OBJECTS, THREADS, DESCRIPTORS = (
    [int(text) for text in sys.argv[1:]] + [10_000, 1_000_000, 500, 10_000][len(sys.argv) - 1 :]
)
TEXT = os.urandom(4096) * 4
# Work of each kind, one after the other; each takes some milliseconds.
KINDS = ("recursion", "generators", "in_c", "plain")


class Blob:
    __slots__ = ("number", "neighbour")

    def __init__(self, number, neighbour):
        self.number = number
        self.neighbour = neighbour


class Store:
    def __init__(self):
        self.blobs = {}


def recursion(depth, rounds=1):
    for _ in range(rounds - 1):
        recursion(depth)
    return recursion(depth - 1) + 1 if depth else 0


def numbers(count):
    for number in range(count):
        yield number


def through(numbers_before):
    for number in numbers_before:
        yield number + 1


def generators(count):
    chain = numbers(count)
    for _ in range(20):
        chain = through(chain)
    return sum(chain)


def in_c(rounds):
    return sum(len(zlib.compress(TEXT, 6)) for _ in range(rounds))


def plain(count):
    total = 0
    for number in range(count):
        total += number % 7
    return total


WORK = {"recursion": (recursion, 700, 40), "generators": (generators, 2000), "in_c": (in_c, 20), "plain": (plain, 80_000)}
store = Store()
descriptors = []
waiting = {}
spent = dict.fromkeys(KINDS, 0.0)
turns = 0


def sleeper(until):
    until.wait()


async def inner(kind, primitives):
    if kind == "sleep":
        await asyncio.sleep(100_000)
    elif kind == "event":
        await primitives["event"].wait()
    elif kind == "queue-get":
        await primitives["queue"].get()
    elif kind == "lock":
        async with primitives["lock"]:
            pass
    else:
        await asyncio.get_running_loop().create_future()


async def outer(kind, primitives):
    await inner(kind, primitives)


async def spin():
    global turns
    while True:
        kind = KINDS[turns % len(KINDS)]
        function, *arguments = WORK[kind]
        before = time.thread_time()
        function(*arguments)
        spent[kind] += time.thread_time() - before
        turns += 1
        await asyncio.sleep(0)


def truth():
    return {
        "tasks": waiting,
        "blobs": len(store.blobs),
        "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")) - 1,
        "spent": dict(spent),
        "turns": turns,
        # Whether it is whole: what a stray write into it would break.
        "sound": all(blob.number == key for key, blob in store.blobs.items())
        and recursion(500) == 500
        and generators(100) == sum(range(100)) + 2000,
    }


def answer(loop, done):
    for line in sys.stdin:
        if line.strip() == "truth":
            loop.call_soon_threadsafe(lambda: print(json.dumps(truth()), flush=True))
        else:
            break
    loop.call_soon_threadsafe(done.set)


async def main():
    loop = asyncio.get_running_loop()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for _ in range(min(DESCRIPTORS, most - 200)):
        descriptors.append(os.open("/dev/null", os.O_RDONLY))
    previous = None
    for number in range(OBJECTS):
        previous = store.blobs[number] = Blob(number, previous if number % 1000 else None)
    until = threading.Event()
    threading.stack_size(128 * 1024)
    for number in range(THREADS):
        threading.Thread(target=sleeper, args=(until,), name="sleeper-%d" % number, daemon=True).start()
    primitives = {"event": asyncio.Event(), "queue": asyncio.Queue(), "lock": asyncio.Lock()}
    await primitives["lock"].acquire()
    kinds = ("sleep", "event", "queue-get", "lock", "future")
    keep = []
    for number in range(TASKS):
        kind = kinds[number % len(kinds)]
        keep.append(loop.create_task(outer(kind, primitives)))
        waiting[kind] = waiting.get(kind, 0) + 1
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    done = asyncio.Event()
    threading.Thread(target=answer, args=(loop, done), name="answer", daemon=True).start()
    keep.append(loop.create_task(spin()))
    print("READY %d 0" % os.getpid(), flush=True)
    await done.wait()
    for task in keep:
        task.cancel()
    until.set()
    print("ENDED", flush=True)


sys.setrecursionlimit(5000)
asyncio.run(main())
