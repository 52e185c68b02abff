"""How long a task waits at a point: a pure function of the schedule, the task and its step, so that it is the same in every run."""

import hashlib

# A wait longer than this is taken to be for ever by whoever asked for it; the loop goes on with others in the meantime.
MOST_TURNS = 1000


def fraction(*parts):
    """Uniform on [0, 1), the same for the same parts on every version and machine."""
    text = "/".join(str(part) for part in parts).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big") / 2**56


def turns_at_random(seed, key, rate, most):
    """0 with the probability 1 - rate, else 1 to most, small ones more often."""
    if fraction(seed, key) >= rate:
        return 0
    return 1 + int(most * fraction(seed, key, "turns") ** 2)


class Explicit:
    """Waits only where the schedule says so."""

    def __init__(self, spec):
        self.delays = {f"{task}:{step}": turns for task, step, turns in spec["delays"]}

    def turns(self, task, step, frames):
        return self.delays.get(f"{task}:{step}", 0)


class Random:
    """Waits at points drawn with a rate."""

    def __init__(self, spec):
        self.spec = spec

    def turns(self, task, step, frames):
        spec = self.spec
        return turns_at_random(spec["seed"], f"{task}:{step}", spec["rate"], spec["most"])


class Targeted(Random):
    """Waits at the places that were named, often, and elsewhere hardly ever."""

    def __init__(self, spec):
        super().__init__(spec)
        self.places = spec["places"]

    def turns(self, task, step, frames):
        spec = self.spec
        near = any(is_place(frame, place) for frame in frames for place in self.places)
        rate = spec["rate"] if near else spec["rate"] / 20
        return turns_at_random(spec["seed"], f"{task}:{step}", rate, spec["most"])


def is_place(frame, place):
    """Whether a frame (path, line) is a place as typed (`file.py:37`), two lines up or down allowed: an await stands beside the access."""
    path, _, line = place.rpartition(":")
    return abs(frame[1] - int(line)) <= 2 and (frame[0] == path or frame[0].endswith("/" + path))


class Priorities:
    """
    PCT (Burckhardt et al., ASPLOS 2010): of the tasks that could go on, the one of highest priority does; at depth - 1 points the priority
    of the running task falls below all others.
    """

    def __init__(self, spec):
        self.seed = spec["seed"]
        self.priorities = {}
        self.waiting = {}
        self.chosen = None
        self.met = 0
        points = max(1, spec["points"])
        self.changes = {
            int(points * fraction(self.seed, "change", number)): number
            for number in range(1, spec["depth"])
        }

    def arrive(self, task):
        """A task could go on: it stands among the waiting from now on."""
        if task not in self.priorities:
            self.priorities[task] = 1 + fraction(self.seed, "priority", task)
        number = self.changes.get(self.met)
        if number is not None:
            self.priorities[task] = -number
        self.met += 1
        self.waiting[task] = self.priorities[task]

    def has_only_lowered(self):
        """Whether all that wait are such that should come last of all."""
        return all(priority < 0 for priority in self.waiting.values())

    def choose(self):
        """Everybody who could go on waits: the one of highest priority is next."""
        if self.waiting:
            self.chosen = max(self.waiting, key=self.waiting.__getitem__)

    def goes(self, task):
        return self.chosen == task

    def leave(self, task):
        self.waiting.pop(task, None)
        if self.chosen == task:
            self.chosen = None


def decider(spec):
    """What decides for a schedule; None for the unperturbed run."""
    kinds = {"explicit": Explicit, "random": Random, "targeted": Targeted, "pct": Priorities}
    kind = kinds.get(spec["strategy"])
    return None if kind is None else kind(spec)
