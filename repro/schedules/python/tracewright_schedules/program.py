"""The program itself, run in this process as the interpreter would."""

import os
import runpy
import sys

from .clock import Clock, install_clock
from .decisions import Priorities, decider
from .frames import Ownership
from .record import Record
from .tasks import Scheduling, install_tasks
from .threads import Threads, install_threads


def install(spec, path):
    """From now on this process runs under the schedule and records what it meets."""
    ownership = Ownership(spec.get("include", ()))
    record = Record(path)
    chosen = decider(spec)
    scheduling = Scheduling(chosen, record, ownership)
    install_tasks(scheduling)
    install_clock(Clock(scheduling, spec.get("clock", "virtual") == "virtual"))
    if spec.get("threads"):
        by_line = None if isinstance(chosen, Priorities) else chosen
        install_threads(Threads(by_line, record, ownership))
    return record


def run_program(argv):
    """Runs `script args…`, `-m module args…` or `-c text args…` as __main__; what it raises is the caller's."""
    if argv[0] == "-m":
        sys.argv = argv[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    elif argv[0] == "-c":
        sys.argv = ["-c"] + argv[2:]
        sys.path[0] = ""
        exec(compile(argv[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = argv
        sys.path[0] = os.path.dirname(os.path.abspath(argv[0]))
        runpy.run_path(argv[0], run_name="__main__")
