"""
One process that has the interpreter and asyncio loaded and forks a child for each run: 10 ms instead of 100. Takes a run as a line of
JSON on stdin and answers a line on stdout.
"""

import asyncio  # noqa: F401: so that no child has to load it
import atexit
import concurrent.futures  # noqa: F401
import gc
import importlib
import json
import os
import queue  # noqa: F401
import subprocess  # noqa: F401
import sys
import threading

from .program import install, run_program


def serve():
    """Answers until stdin ends; does not return."""
    requests = sys.stdin.fileno()
    answers = os.dup(sys.stdout.fileno())
    for request in lines(requests):
        for name in request.get("preload", ()):
            try:
                importlib.import_module(name)
            except BaseException:
                pass  # then the program will meet it itself
        if "record" not in request:
            continue
        gc.collect()
        gc.freeze()
        child = os.fork()
        if child == 0:
            os.close(answers)
            run_child(request)
        _, status = os.waitpid(child, 0)
        answer = {"id": request["id"], "status": status}
        os.write(answers, (json.dumps(answer) + "\n").encode())
    os._exit(0)


def lines(descriptor):
    rest = b""
    while True:
        data = os.read(descriptor, 65536)
        if not data:
            return
        rest += data
        *whole, rest = rest.split(b"\n")
        for line in whole:
            yield json.loads(line)


def run_child(request):
    os.environ.update(request["env"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(nothing)
    os.close(output)
    record = install(request["schedule"], request["record"])
    code = 1
    try:
        run_program(request["argv"])
        code = 0
    except SystemExit as end:
        code = exit_code(end)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    if request.get("modules"):
        known = getattr(sys, "stdlib_module_names", ())
        record.write("modules", [name for name in sys.modules if name.split(".")[0] in known])
    leave(code)


def exit_code(end):
    """What the interpreter makes of SystemExit."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    print(end.code, file=sys.stderr)
    return 1


def leave(code):
    """What the interpreter does at its end and a program can see; taking apart a forked interpreter costs more than most runs."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # the program has closed it
    os._exit(code)
