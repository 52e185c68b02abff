"""What a target does and when, from the command line, and the truth about it, as JSON Lines.

Times are CLOCK_MONOTONIC in nanoseconds. One line a block: kind, nominal ms, function, start_ns, end_ns, and what the kernel says of
the thread meanwhile: cpu_ns on a core, wait_ns waiting for one.
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import sys
import time

import faults

MIN_SPACING_MS = 60
SMALL_WORK_S = 0.0003
SMALL_WORK_TASKS = 3
PLANTED_MS = 60


def parse(argv, **extra):
    parser = argparse.ArgumentParser()
    parser.add_argument("--truth", help="where the truth log goes")
    parser.add_argument("--kinds", default="", help="comma-separated, of " + ",".join(faults.KINDS))
    parser.add_argument("--durations", default="60", help="nominal milliseconds, comma-separated")
    parser.add_argument("--reps", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spacing-ms", type=float, default=MIN_SPACING_MS, help="least time between two blocks")
    parser.add_argument("--jitter-ms", type=float, default=60, help="up to so much more")
    parser.add_argument("--start-s", type=float, default=2, help="before the first block")
    parser.add_argument("--seconds", type=float, default=60, help="the target stops by itself then")
    parser.add_argument("--saturated", action="store_true", help="back-to-back callbacks of 0.3 ms: the loop never waits in its poll")
    parser.add_argument("--healthy", action="store_true", help="the same requests, each awaiting where it would have blocked")
    parser.add_argument("--plant-s", type=float, default=0, help="a real block of 60 ms every so often, also in the healthy twin")
    parser.add_argument("--helper-port", type=int, default=0)
    parser.add_argument("--canary", help="run the memory canary and write its latencies there")
    for name, options in extra.items():
        parser.add_argument("--" + name, **options)
    arguments = parser.parse_args(argv)
    arguments.spacing_ms = max(arguments.spacing_ms, MIN_SPACING_MS)
    faults.HELPER_PORT = arguments.helper_port
    return arguments


class Truth:
    """The log of what was really done."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.small = 0
        self.file = open(arguments.truth, "w") if arguments.truth else None
        self.schedstat = os.open("/proc/self/schedstat", os.O_RDONLY)
        self.write(type="start", pid=os.getpid(), at_ns=time.monotonic_ns(), wall=time.time(), argv=sys.argv[1:])

    def write(self, **record):
        if self.file:
            self.file.write(json.dumps(record) + "\n")
            self.file.flush()

    def run_times(self):
        on_cpu, waited = os.pread(self.schedstat, 100, 0).split()[:2]
        return int(on_cpu), int(waited)

    def perform(self, kind, ms):
        """Blocks, and logs it."""
        fault = faults.KINDS[kind]
        cpu, waited = self.run_times()
        start = time.monotonic_ns()
        fault(ms)
        end = time.monotonic_ns()
        cpu_after, waited_after = self.run_times()
        self.write(
            type="block", kind=kind, ms=ms, function=fault.__name__, start_ns=start, end_ns=end, cpu_ns=cpu_after - cpu, wait_ns=waited_after - waited
        )

    async def work(self, kind, ms):
        """What a request does: blocks the loop, or awaits in the healthy twin."""
        if self.arguments.healthy:
            await asyncio.sleep(ms / 1000)
        else:
            self.perform(kind, ms)

    def close(self):
        self.write(type="end", at_ns=time.monotonic_ns(), small=self.small, cpu_s=time.process_time())


def steps(arguments):
    kinds = [kind for kind in arguments.kinds.split(",") if kind]
    durations = [int(ms) for ms in arguments.durations.split(",")]
    plan = [(kind, ms) for _ in range(arguments.reps) for kind in kinds for ms in durations]
    chance = random.Random(arguments.seed)
    chance.shuffle(plan)
    for kind, ms in plan:
        yield (arguments.spacing_ms + chance.random() * arguments.jitter_ms) / 1000, kind, ms


async def small_work(truth):
    """Ordinary load: short callbacks, one after the other."""
    while True:
        end = time.monotonic() + SMALL_WORK_S
        while time.monotonic() < end:
            pass
        truth.small += 1
        await asyncio.sleep(0)


async def plant(truth):
    """The needle that a watcher must find where nothing else is to be found."""
    for kind in itertools.cycle(["sleep", "spin"]):
        await asyncio.sleep(truth.arguments.plant_s)
        truth.perform(kind, PLANTED_MS)


async def request(port, path):
    """A real request over loopback, made from the target's own loop."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(("GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path).encode())
    answer = await reader.read()
    writer.close()
    if b" 200 " not in answer.split(b"\r\n")[0]:
        raise RuntimeError("request failed: %r" % answer[:200])


async def run(truth, port):
    """The whole life of a target once it listens: says READY, follows the plan, returns when its time is up."""
    arguments = truth.arguments
    end = time.monotonic() + arguments.seconds
    signal.alarm(int(arguments.seconds) + 10)  # the kernel ends it if the loop no longer can
    print("READY %d %d" % (os.getpid(), port), flush=True)
    if arguments.canary:
        import canary

        canary.start(arguments.canary, arguments.seconds)
    background = [asyncio.ensure_future(small_work(truth)) for _ in range(SMALL_WORK_TASKS if arguments.saturated else 0)]
    if arguments.plant_s:
        background.append(asyncio.ensure_future(plant(truth)))
    await asyncio.sleep(arguments.start_s)
    for pause, kind, ms in steps(arguments):
        if time.monotonic() + pause > end:
            break
        await asyncio.sleep(pause)
        await request(port, "/work?kind=%s&ms=%d" % (kind, ms))
    print("DONE", flush=True)
    await asyncio.sleep(max(0, end - time.monotonic()))
    for task in background:
        task.cancel()
    truth.close()
