"""Calls one function from many places at once and looks whether an oracle holds.

Run: python3 call.py
"""

import asyncio
import importlib
import inspect
import json
import os
import random
import sys
import threading
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.environ.get("REPRO_PARAMETERS") or os.path.join(HERE, "parameters.json")) as file:
    PARAMETERS = json.load(file)
CALL = PARAMETERS["call"]
ORACLE = PARAMETERS["oracle"]
ATTEMPTS = PARAMETERS["attempts"]
CONCURRENCY = PARAMETERS["concurrency"]
SEED = int(os.environ.get("REPRO_SEED") or PARAMETERS["seed"])


def cannot_test(reason):
    print(f"cannot test: {reason}", file=sys.stderr)
    sys.stdout.flush()
    os._exit(125)


def resolve(target):
    """The function that is called 'package.module:name'."""
    module, _, name = target.partition(":")
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        cannot_test(f"{target}: {type(error).__name__}: {error}")
    return found


class Attempt:
    """One call: what it was given, and what came of it."""

    def __init__(self, number):
        self.number = number
        self.args = CALL["args"][number % len(CALL["args"])]
        self.output = None
        self.error = None
        self.is_done = False


def call_from_threads(function, attempts, prefix):
    """Starts with all threads at one moment; each takes the next attempt when it is through with one."""
    waiting = iter(attempts)
    lock = threading.Lock()
    barrier = threading.Barrier(min(CONCURRENCY, len(attempts)))

    def work():
        barrier.wait()
        while True:
            with lock:
                attempt = next(waiting, None)
            if attempt is None:
                return
            try:
                attempt.output = function(*prefix, *attempt.args)
            except Exception as error:
                attempt.error = error
            attempt.is_done = True

    threads = [threading.Thread(target=work, daemon=True) for _ in range(barrier.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def call_from_tasks(function, attempts, prefix):
    """As many tasks as are to run at once; each takes the next attempt when it is through with one."""
    waiting = iter(attempts)

    async def work():
        for attempt in waiting:
            try:
                attempt.output = await function(*prefix, *attempt.args)
            except (Exception, asyncio.CancelledError) as error:
                attempt.error = error
            attempt.is_done = True

    await asyncio.gather(*(work() for _ in range(min(CONCURRENCY, len(attempts)))))


async def run_tasks(function, attempts, setup):
    prefix = []
    if setup is not None:
        made = setup()
        made = await made if inspect.isawaitable(made) else made
        prefix = [] if made is None else [made]
    await call_from_tasks(function, attempts, prefix)


def run_threads(function, attempts, setup):
    made = None if setup is None else setup()
    call_from_threads(function, attempts, [] if made is None else [made])


def failures(attempts):
    """What is wrong, one line for each failed attempt."""
    return [
        f"attempt {one.number}: {''.join(traceback.format_exception_only(type(one.error), one.error)).strip()}"
        for one in attempts
        if one.error is not None
    ]


def main():
    random.seed(SEED)
    sys.path.insert(0, os.path.join(HERE, CALL.get("path", ".")))
    function = resolve(CALL["target"])
    setup = resolve(CALL["setup"]) if "setup" in CALL else None
    attempts = [Attempt(number) for number in range(ATTEMPTS)]
    try:
        if inspect.iscoroutinefunction(function):
            asyncio.run(run_tasks(function, attempts, setup))
        else:
            run_threads(function, attempts, setup)
    except Exception as error:
        cannot_test(f"{type(error).__name__}: {error}")
    found = failures(attempts)
    for line in found[:5]:
        print(line)
    print(f"Errors: {len(found)} / {ATTEMPTS}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
