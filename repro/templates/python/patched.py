"""Runs a script with some functions of the program it imports serialised, or replaced by ones that answer at once.

Run: python3 patched.py '{"serialize": ["package.module:callable"], "mock": {"package.module:other": null}}' script.py
"""

import asyncio
import functools
import importlib.util
import inspect
import json
import os
import runpy
import sys
import threading


def serialised(function):
    """The same function, one call at a time; a call from within itself goes through."""
    if inspect.iscoroutinefunction(function):
        locks = {}
        holders = {}

        @functools.wraps(function)
        async def one_at_a_time(*args, **kwargs):
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            if holders.get(loop) is task:
                return await function(*args, **kwargs)
            async with locks.setdefault(loop, asyncio.Lock()):
                holders[loop] = task
                try:
                    return await function(*args, **kwargs)
                finally:
                    holders[loop] = None

        return one_at_a_time
    lock = threading.RLock()

    @functools.wraps(function)
    def one_at_a_time(*args, **kwargs):
        with lock:
            return function(*args, **kwargs)

    return one_at_a_time


def answering(function, value):
    """A function that gives `value` at once, awaited where the real one is."""
    if inspect.iscoroutinefunction(function):

        async def at_once(*args, **kwargs):
            return value

    else:

        def at_once(*args, **kwargs):
            return value

    return functools.wraps(function)(at_once)


class Patches:
    """Finds the modules that are to be patched when they are imported, and patches them when they have run."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.missing = set(wanted)
        self.busy = False

    def find_spec(self, name, path=None, target=None):
        if self.busy or not any(module == name for module, _ in self.wanted):
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def run_and_patch(module):
            run(module)
            self.patch(module)

        spec.loader.exec_module = run_and_patch
        return spec

    def patch(self, module):
        for (name, path), change in self.wanted.items():
            if name != module.__name__:
                continue
            *outer, last = path.split(".")
            owner = module
            for part in outer:
                owner = getattr(owner, part, None)
            found = inspect.getattr_static(owner, last, None) if owner is not None else None
            if found is None:
                continue
            if isinstance(found, (staticmethod, classmethod)):
                setattr(owner, last, type(found)(change(found.__func__)))
            else:
                setattr(owner, last, change(found))
            self.missing.discard((name, path))


def main():
    spec, script = json.loads(sys.argv[1]), os.path.abspath(sys.argv[2])
    wanted = {}
    for target in spec.get("serialize", []):
        wanted[tuple(target.split(":", 1))] = serialised
    for target, value in spec.get("mock", {}).items():
        wanted[tuple(target.split(":", 1))] = functools.partial(answering, value=value)
    patches = Patches(wanted)
    sys.meta_path.insert(0, patches)
    sys.argv = [script]
    sys.path[0] = os.path.dirname(script)
    code = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    if patches.missing:
        names = ", ".join(sorted(":".join(one) for one in patches.missing))
        sys.stdout.flush()
        print(f"cannot test: {names} was not found in what the script imported", file=sys.stderr)
        code = 125
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
