"""
Tasks of asyncio that go on some turns later than they could: as if what they awaited had completed later.

A task is driven through a coroutine of ours. When the loop resumes it, it gives the loop back for k turns (what `await asyncio.sleep(0)`
does), then goes on with what it was resumed with. Nothing is reordered in the loop's queue, a task's first step is not delayed, and a
cancellation that arrives meanwhile is delivered as asyncio delivers it to a task whose future is done and that has not run yet.
"""

import asyncio
import collections.abc
import threading

from .decisions import MOST_TURNS, Priorities
from .frames import awaiting_frames


class Scheduling:
    """One run's state: who decides, what was met, and how many tasks are waiting by our doing."""

    def __init__(self, decider, record, ownership):
        self.decider = decider
        self.record = record
        self.ownership = ownership
        self.roots = 0
        self.waiting = 0
        self.current = threading.local()

    def next_key(self):
        parent = getattr(self.current, "task", None)
        if parent is None:
            self.roots += 1
            return str(self.roots - 1)
        parent.children += 1
        return f"{parent.key}.{parent.children - 1}"


class DelayedTask(collections.abc.Coroutine):
    """A coroutine that drives another; what is asked of it and not its own, the other answers (`cr_frame`, `cr_running`, …)."""

    def __init__(self, coroutine, scheduling):
        self.coroutine = coroutine
        self.scheduling = scheduling
        self.key = scheduling.next_key()
        self.children = 0
        self.step = 0
        self.started = False
        self.left = 0  # turns still to wait
        self.turns = 0  # waited so far
        self.frames = None
        self.pending = None  # the exception to go on with
        self.waits = False

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "coroutine"), name)

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def send(self, value):
        if self.waits:
            return self.wait_on()
        if not self.started:
            self.started = True
            return self.go_on(None)
        return self.meet(None)

    def throw(self, kind, value=None, trace=None):
        error = kind if isinstance(kind, BaseException) else (value or kind())
        if self.waits:
            self.stop_waiting()
            return self.go_on(error)
        if not self.started or isinstance(error, GeneratorExit):
            self.started = True
            return self.go_on(error)
        return self.meet(error)

    def close(self):
        if self.waits:
            self.stop_waiting()
        return self.coroutine.close()

    def meet(self, error):
        """A point: the loop has resumed the task."""
        scheduling = self.scheduling
        self.frames = awaiting_frames(self.coroutine, scheduling.ownership)
        if not self.frames:
            return self.go_on(error)
        self.step += 1
        decider = scheduling.decider
        if decider is None:
            scheduling.record.point(self.key, self.step, 0, self.frames)
            return self.go_on(error)
        self.turns = 0
        if isinstance(decider, Priorities):
            decider.arrive(self.key)
            turns = MOST_TURNS
        else:
            turns = min(MOST_TURNS, decider.turns(self.key, self.step, self.frames))
            if turns == 0:
                scheduling.record.point(self.key, self.step, 0, self.frames)
                return self.go_on(error)
        self.pending = error
        self.left = turns
        self.waits = True
        scheduling.waiting += 1
        return None

    def wait_on(self):
        """The loop came round once more."""
        self.turns += 1
        self.left -= 1
        decider = self.scheduling.decider
        goes = self.left <= 0
        if not goes and isinstance(decider, Priorities):
            goes = decider.goes(self.key)
        if not goes:
            return None
        self.stop_waiting()
        error, self.pending = self.pending, None
        return self.go_on(error)

    def stop_waiting(self):
        scheduling = self.scheduling
        self.waits = False
        scheduling.waiting -= 1
        if isinstance(scheduling.decider, Priorities):
            scheduling.decider.leave(self.key)
        scheduling.record.point(self.key, self.step, self.turns, self.frames)

    def go_on(self, error):
        current = self.scheduling.current
        before = getattr(current, "task", None)
        current.task = self
        try:
            if error is not None:
                return self.coroutine.throw(error)
            return self.coroutine.send(None)
        finally:
            current.task = before


def install_tasks(scheduling):
    """Every task that asyncio makes from now on is driven by us."""
    create = asyncio.BaseEventLoop.create_task

    def create_task(self, coro, **options):
        if asyncio.iscoroutine(coro) and not isinstance(coro, DelayedTask):
            coro = DelayedTask(coro, scheduling)
        return create(self, coro, **options)

    asyncio.BaseEventLoop.create_task = create_task
