"""Where a suspended coroutine stands, in the program's own code."""

import os
import sys
import sysconfig

DRIVER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Deeper ones repeat.
MOST_FRAMES = 8


def foreign_folders():
    """Folders whose code is not the program's own: the standard library and installed packages."""
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {os.path.realpath(paths[name]) + os.sep for name in names if paths.get(name)}
    base = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
    return tuple(folders | {base, DRIVER})


class Ownership:
    """Decides which files are the program's own. `include`: installed packages that count as own."""

    def __init__(self, include=()):
        self.foreign = foreign_folders()
        self.include = tuple(os.sep + name.replace(".", os.sep) for name in include)
        self.known = {}

    def is_own(self, path):
        known = self.known.get(path)
        if known is None:
            known = self.known[path] = self.judge(path)
        return known

    def judge(self, path):
        if path.startswith("<"):
            return False
        path = os.path.realpath(path)
        marks = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
        if not path.startswith(self.foreign) and not any(mark in path for mark in marks):
            return True
        return any(part + os.sep in path or path.endswith(part + ".py") for part in self.include)


def awaiting_frames(coroutine, ownership):
    """The own frames (path, line, function) of a suspended coroutine and of what it awaits, innermost first."""
    frames = []
    seen = 0
    while coroutine is not None and seen < 64:
        seen += 1
        frame = (
            getattr(coroutine, "cr_frame", None)
            or getattr(coroutine, "gi_frame", None)
            or getattr(coroutine, "ag_frame", None)
        )
        if frame is not None and ownership.is_own(frame.f_code.co_filename):
            name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
            frames.append((frame.f_code.co_filename, frame.f_lineno, name))
        awaited = getattr(coroutine, "cr_await", None)
        if awaited is None:
            awaited = getattr(coroutine, "gi_yieldfrom", None)
        if awaited is None:
            awaited = getattr(coroutine, "ag_await", None)
        coroutine = awaited
    frames.reverse()
    return frames[:MOST_FRAMES]


def calling_frame(ownership, depth=1):
    """The own frame that runs now; None when there is none."""
    frame = sys._getframe(depth)
    while frame is not None:
        if ownership.is_own(frame.f_code.co_filename):
            return (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None
