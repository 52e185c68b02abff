"""Tasks of every kind, each suspended in a line that says what a reader from outside has to find: prints the truth, then idles.

With a number: so many tasks more that wait for one event. With `uvloop`: on its loop.
"""
import asyncio
import contextlib
import inspect
import json
import os
import sys

truth = {}
keep = []


def here():
    return inspect.currentframe().f_back.f_lineno


def expect(name, coroutine, line, wait, **more):
    truth[name] = dict(coroutine=coroutine, line=line, wait=wait, **more)


def start(name, coroutine):
    task = asyncio.get_running_loop().create_task(coroutine)
    task.set_name(name)
    keep.append(task)
    return task


async def sleeping(name):
    expect(name, "sleeping", here() + 1, "sleep", delay=3600)
    await asyncio.sleep(3600)


async def deep(name, depth):
    if depth == 0:
        return await leaf(name)
    return await deep(name, depth - 1)


async def leaf(name):
    expect(name, "deep", here() + 1, "event", depth=12)
    await keep_event.wait()


async def owner(name):
    async with lock:
        expect(name, "owner", here() + 1, "future", holds="Lock")
        await asyncio.get_running_loop().create_future()


async def locked(name):
    expect(name, "locked", here() + 1, "lock", holds=None)
    async with lock:
        pass


async def limited(name):
    async with limit:
        expect(name, "limited", here() + 1, "semaphore", holds="Semaphore")
        await limit.acquire()


@contextlib.asynccontextmanager
async def connection():
    async with limit2:
        yield 1


async def pooled(name):
    async with connection():
        expect(name, "pooled", here() + 1, "queue-get", holds="Semaphore")
        await empty.get()


async def putting(name):
    expect(name, "putting", here() + 1, "queue-put")
    await full.put(2)


async def conditional(name):
    async with condition:
        expect(name, "conditional", here() + 1, "condition")
        await condition.wait()


async def reading(name, port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    keep.append(writer)
    expect(name, "reading", here() + 1, "stream-read")
    await reader.readline()


async def threaded(name):
    expect(name, "threaded", here() + 1, "executor")
    await asyncio.get_running_loop().run_in_executor(None, parked.wait)


async def gathering(name):
    expect(name, "gathering", here() + 1, "gather")
    await asyncio.gather(*[child(f"{name}-{i}", name) for i in range(3)])


async def child(name, parent):
    asyncio.current_task().set_name(name)
    expect(name, "child", here() + 1, "event", parent=parent)
    await keep_event.wait()


async def direct(name):
    task = start(f"{name}-0", child(f"{name}-0", name))
    expect(name, "direct", here() + 1, "task")
    await task


async def shielding(name):
    task = start(f"{name}-0", child(f"{name}-0", name))
    expect(name, "shielding", here() + 1, "future")
    await asyncio.shield(task)


async def timing(name):
    line = here() + 1
    await asyncio.wait_for(timed_child(name, line), 3600)


async def timed_child(name, line):
    # Up to 3.11, wait_for makes a task of it; since then it is awaited where it is.
    if sys.version_info < (3, 12):
        asyncio.current_task().set_name(f"{name}-0")
        expect(name, "timing", line, "task")
        expect(f"{name}-0", "timed_child", here() + 3, "event", parent=name)
    else:
        expect(name, "timing", here() + 1, "event")
    await keep_event.wait()


async def waiting(name):
    tasks = [start(f"{name}-{i}", child(f"{name}-{i}", name)) for i in range(2)]
    expect(name, "waiting", here() + 1, "wait")
    await asyncio.wait(tasks)


async def generating(name):
    async for _ in ticks(name):
        pass


async def ticks(name):
    yield 1
    expect(name, "generating", here() + 1, "event")
    await keep_event.wait()
    yield 2


async def grouping(name):
    async with asyncio.TaskGroup() as group:
        keep.append(group.create_task(child(f"{name}-0", name), name=f"{name}-0"))
        line = here() - 2
        expect(name, "grouping", line, "task-group", holds=None)


async def eager(name):
    expect(name, "eager", here() + 1, "event")
    await keep_event.wait()


async def main(count, crowd):
    global lock, limit, limit2, empty, full, condition, keep_event, parked
    import threading

    lock, condition, keep_event = asyncio.Lock(), asyncio.Condition(), asyncio.Event()
    limit, limit2 = asyncio.Semaphore(1), asyncio.Semaphore(1)
    empty, full = asyncio.Queue(), asyncio.Queue(1)
    parked = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    full.put_nowait(1)
    server = await asyncio.start_server(lambda r, w: keep.append(w), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    expect("main", "main", 0, "sleep", delay=7200)
    asyncio.current_task().set_name("main")
    names = {
        "schläft-1": sleeping, "owner-1": owner, "locked-1": locked, "locked-2": locked, "limited-1": limited,
        "pooled-1": pooled, "putting-1": putting, "conditional-1": conditional, "threaded-1": threaded,
        "gathering-1": gathering, "direct-1": direct, "shielding-1": shielding, "timing-1": timing,
        "waiting-1": waiting, "generating-1": generating,
    }
    for name, function in names.items():
        start(name, function(name))
    start("deep-1", deep("deep-1", 10))
    start("reading-1", reading("reading-1", port))
    if sys.version_info >= (3, 11):
        start("grouping-1", grouping("grouping-1"))
    if sys.version_info >= (3, 12):
        loop = asyncio.get_running_loop()
        keep.append(asyncio.Task(eager("eager-1"), loop=loop, name="eager-1", eager_start=True))
    for i in range(count):
        keep.append(loop_task(crowd))
    while len(truth) < 20 or "reading-1" not in truth:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    print("READY %d 0" % os.getpid(), flush=True)
    truth["main"]["line"] = here() + 2
    print(json.dumps(truth), flush=True)
    await asyncio.sleep(7200)


def loop_task(crowd):
    return asyncio.get_running_loop().create_task(crowd())


async def crowd():
    await keep_event.wait()


if __name__ == "__main__":
    if "uvloop" in sys.argv:
        import uvloop

        uvloop.install()
    counts = [int(a) for a in sys.argv[1:] if a.isdigit()]
    asyncio.run(main(counts[0] if counts else 0, crowd))
