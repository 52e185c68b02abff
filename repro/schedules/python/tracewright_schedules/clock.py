"""
The loop's look at the world, once a turn. With the virtual clock, time passes only where everybody waits: the clock jumps to the next
timer, unless something outside (a socket, a thread, a process) may come first.
"""

import os
import sys
import threading
import time
from asyncio import base_events, selector_events

from .decisions import Priorities

# Virtual seconds that pass at most in a turn in which only tasks of ours wait: a delay is a jitter, not a time-out of somebody else's.
TURN_SECONDS = 0.01
# Real seconds for which a turn waits for the outside when only tasks of ours could go on.
OUTSIDE_SECONDS = 0.001
# Such turns one after another before the rest of a delay passes at once: a quarter of a second, on a busy machine a few. What is outside and takes
# longer does not come first; without an end a delay of many turns would become a time-out of the program's own.
MOST_FRUITLESS = 250
# Turns for which tasks that come last wait for timers and the outside: half a virtual second.
PATIENCE = 50
# Nothing can happen any more: nobody is ready, no timer, no descriptor, no other thread. As `timeout(1)` says it.
HANG_CODE = 124


class Clock:
    def __init__(self, scheduling, virtual):
        self.scheduling = scheduling
        self.virtual = virtual
        self.now = time.monotonic()
        self.jumped = 0.0
        self.monotonic = time.monotonic
        self.patience = PATIENCE
        self.fruitless = 0
        self.jobs = 0  # handed to executors, not done yet

    def attach(self, loop):
        """Puts itself between a loop and its selector."""
        selector = loop._selector
        look = selector.select

        def select(timeout=None):
            return self.look(loop, look, timeout)

        selector.select = select
        if self.virtual:
            loop.time = lambda: self.now

    def look(self, loop, look, timeout):
        scheduling = self.scheduling
        if timeout is not None and timeout <= 0:
            events = look(0)
            if events or scheduling.waiting == 0 or scheduling.waiting < len(loop._ready):
                self.fruitless = 0
                return events
            # Only those that we hold back could go on.
            if isinstance(scheduling.decider, Priorities):
                self.choose(loop)
            if self.outside(loop):
                if self.fruitless >= MOST_FRUITLESS:
                    return events
                self.fruitless += 1
                return self.wait(look, OUTSIDE_SECONDS)
            if self.virtual and loop._scheduled:
                self.jump(min(TURN_SECONDS, loop._scheduled[0]._when - self.now))
            return events
        if not self.virtual or self.outside(loop):
            return self.wait(look, timeout)
        if timeout is None:
            if loop._signal_handlers or threading.current_thread() is not threading.main_thread():
                return self.wait(look, timeout)
            self.hang()
        self.jump(timeout)
        return look(0)

    def choose(self, loop):
        """PCT: one goes on, unless all are such that come last and time may still bring others."""
        decider = self.scheduling.decider
        if decider.has_only_lowered() and self.patience > 0:
            if self.outside(loop) or (loop._scheduled and self.virtual):
                self.patience -= 1
                return
        self.patience = PATIENCE
        decider.choose()

    def wait(self, look, timeout):
        began = self.monotonic()
        events = look(timeout)
        self.now += self.monotonic() - began
        return events

    def jump(self, seconds):
        if seconds > 0:
            self.now += seconds
            self.jumped += seconds

    def outside(self, loop):
        """Whether something outside may wake the loop: a descriptor but its own, a job of an executor, another thread."""
        return len(loop._selector.get_map()) > 1 or self.jobs > 0 or threading.active_count() > 1

    def hang(self):
        self.scheduling.record.write("hang")
        sys.stderr.write("every task waits for another: nothing can happen any more\n")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(HANG_CODE)


def install_clock(clock):
    """Every loop that asyncio makes from now on is looked at, and with the virtual clock the time module tells its time."""
    initialise = selector_events.BaseSelectorEventLoop.__init__

    def init(self, *args, **options):
        initialise(self, *args, **options)
        clock.attach(self)

    selector_events.BaseSelectorEventLoop.__init__ = init
    count_jobs(clock)
    if clock.virtual:
        for name in ("monotonic", "time", "perf_counter"):
            setattr(time, name, shifted(getattr(time, name), clock))


def shifted(tell, clock):
    def told():
        return tell() + clock.jumped

    return told


def count_jobs(clock):
    run = base_events.BaseEventLoop.run_in_executor

    def done(_):
        clock.jobs -= 1

    def run_in_executor(self, executor, func, *args):
        future = run(self, executor, func, *args)
        clock.jobs += 1
        future.add_done_callback(done)
        return future

    base_events.BaseEventLoop.run_in_executor = run_in_executor
