"""
Threads that stop for a moment at lines of the program's own code. Where they stop is decided by the schedule: the same lines of the same
thread in each run. Which thread the interpreter lets run meanwhile is the operating system's choice, so a schedule makes an interleaving
likely and does not determine it.
"""

import sys
import threading
import time

# Real seconds of one turn: longer than the interpreter's own switching takes with the interval below.
TURN_SECONDS = 0.0005
# Instead of 5 ms: whoever waits for the interpreter gets it soon.
SWITCH_SECONDS = 1e-5


class Threads:
    def __init__(self, decider, record, ownership):
        self.decider = decider
        self.record = record
        self.ownership = ownership
        self.local = threading.local()
        self.started = 0
        self.sleep = time.sleep

    def line(self, path, line, name):
        """A line is about to run in this thread."""
        local = self.local
        if not hasattr(local, "key"):
            return
        local.step += 1
        frames = [(path, line, name)]
        turns = self.decider.turns(local.key, local.step, frames) if self.decider else 0
        self.record.point(local.key, local.step, turns, frames)
        if turns:
            self.sleep(turns * TURN_SECONDS)

    def begin(self, key):
        self.local.key = key
        self.local.step = 0

    def next_key(self):
        self.started += 1
        return f"t{self.started}"


def install_threads(threads):
    """Watches lines of threads that are started from now on, by sys.monitoring (3.12) or sys.settrace."""
    sys.setswitchinterval(SWITCH_SECONDS)
    start, run = threading.Thread.start, threading.Thread.run
    monitoring = getattr(sys, "monitoring", None)

    def keyed_start(self):
        self._tracewright_key = threads.next_key()
        inner = self.run

        def keyed_run():
            threads.begin(self._tracewright_key)
            if monitoring is None:
                sys.settrace(tracer(threads))
            inner()

        self.run = keyed_run
        return start(self)

    threading.Thread.start = keyed_start
    assert run is threading.Thread.run
    if monitoring is not None:
        monitor(threads, monitoring)


def tracer(threads):
    def trace(frame, event, argument):
        code = frame.f_code
        if not threads.ownership.is_own(code.co_filename):
            return None
        if event == "line":
            threads.line(code.co_filename, frame.f_lineno, code.co_name)
        return trace

    return trace


def monitor(threads, monitoring):
    tool = next(number for number in (3, 4, 1, 0) if monitoring.get_tool(number) is None)
    monitoring.use_tool_id(tool, "tracewright")

    def line(code, number):
        if not threads.ownership.is_own(code.co_filename):
            return monitoring.DISABLE
        threads.line(code.co_filename, number, code.co_name)
        return None

    monitoring.register_callback(tool, monitoring.events.LINE, line)
    monitoring.set_events(tool, monitoring.events.LINE)
