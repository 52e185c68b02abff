"""Calls one function from many places at once and looks whether an oracle holds.

Run: python3 call.py
"""

# region: growth
import array
# endregion
import asyncio
# region: growth
import gc
# endregion
import importlib
import inspect
import json
import os
import random
# region: cross-talk, same-alone
import re
# endregion
# region: head-of-line
import signal
# endregion
# region: script
import subprocess
# endregion
import sys
import threading
# region: head-of-line, no-progress
import time
# endregion

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
    sys.stderr.flush()
    sys.stdout.flush()
    os._exit(125)


def resolve(target):
    """What is called 'package.module:name'."""
    module, _, name = target.partition(":")
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        cannot_test(f"{target}: {type(error).__name__}: {error}")
    return found


class Attempt:
    """One call: what it is given, and what comes of it."""

    def __init__(self, number):
        self.number = number
        self.args = CALL["args"][number % len(CALL["args"])]
        # region: cross-talk
        self.args = marked(self.args, number)
        # endregion
        self.output = None
        self.error = None
        self.is_done = False
        # region: head-of-line
        self.began = self.ended = 0.0
        # endregion

    def finish(self, output=None, error=None):
        self.output = output
        self.error = error
        self.is_done = True
        # region: head-of-line
        self.ended = time.monotonic()
        # endregion

    def __str__(self):
        return f"attempt {self.number}"


class Caller:
    """Calls the function concurrently: one that is 'async' from tasks, any other from threads."""

    def __init__(self, function, setup):
        self.function = function
        self.loop = None
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(setup):
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        made = None if setup is None else setup()
        if inspect.isawaitable(made):
            made = self.loop.run_until_complete(made)
        self.first = [] if made is None else [made]

    # region: lost-update
    def value_of(self, read):
        """What a function gives that takes nothing but what the setup made."""
        value = read(*self.first)
        return self.loop.run_until_complete(value) if inspect.isawaitable(value) else value

    # endregion
    def call(self, attempts, concurrency=CONCURRENCY):
        """Makes the attempts, that many at once; each worker takes the next one."""
        workers = min(concurrency, len(attempts))
        if self.loop is None:
            self._call_from_threads(iter(attempts), workers)
        else:
            self.loop.run_until_complete(self._call_from_tasks(iter(attempts), workers))

    def _call_from_threads(self, waiting, workers):
        lock = threading.Lock()
        start = threading.Barrier(workers)

        def work():
            start.wait()
            while True:
                with lock:
                    attempt = next(waiting, None)
                if attempt is None:
                    return
                # region: head-of-line
                attempt.began = time.monotonic()
                # endregion
                try:
                    attempt.finish(self.function(*self.first, *attempt.args))
                except Exception as error:
                    attempt.finish(error=error)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    async def _call_from_tasks(self, waiting, workers):
        async def work():
            for attempt in waiting:
                # Each begins at a turn of its own, as requests do.
                await asyncio.sleep(0)
                # region: head-of-line
                attempt.began = time.monotonic()
                # endregion
                try:
                    output = self.function(*self.first, *attempt.args)
                    attempt.finish(await output if inspect.isawaitable(output) else output)
                except (Exception, asyncio.CancelledError) as error:
                    attempt.finish(error=error)

        await asyncio.gather(*(work() for _ in range(workers)))


def make_attempts():
    attempts = [Attempt(number) for number in range(ATTEMPTS)]
    random.shuffle(attempts)
    return attempts


def raised(attempt):
    return f"{attempt}: {type(attempt.error).__name__}: {attempt.error}"


# region: cross-talk, lost-update, same-alone, head-of-line
def answered(attempts):
    """The attempts that were answered; without any there is nothing to look at."""
    found = [one for one in attempts if one.error is None]
    if not found:
        cannot_test("every attempt failed, the first: " + raised(attempts[0]))
    return found


# endregion
# region: exception
def check_exceptions(caller):
    """No attempt may fail."""
    attempts = make_attempts()
    caller.call(attempts)
    return [raised(one) for one in attempts if one.error is not None], ATTEMPTS


# endregion
# region: lost-update
def check_updates(caller):
    """Each attempt adds a step to a value that another function reads; all must be there."""
    read = resolve(ORACLE["read"])
    step = ORACLE.get("step", 1)
    attempts = make_attempts()
    before = caller.value_of(read)
    caller.call(attempts)
    after = caller.value_of(read)
    made = len(answered(attempts))
    lost = made - (after - before) / step
    lines = [f"{before} + {made} updates by {step} gave {after}"]
    return lines * min(made, int(abs(lost)) or bool(lost)), made


# endregion
# region: cross-talk
MARK = re.compile(r"mark-\d{6}-end")


def mark(number):
    return f"mark-{number:06d}-end"


def marked(value, number):
    """The same arguments with the attempt's own mark in place of '{nonce}'."""
    return json.loads(json.dumps(value).replace("{nonce}", mark(number)))


def check_answers(caller):
    """No answer may hold the mark of another attempt."""
    attempts = make_attempts()
    caller.call(attempts)
    lines = []
    for one in answered(attempts):
        strange = set(MARK.findall(repr(one.output))) - {mark(one.number)}
        if strange:
            lines.append("{} was answered with {}".format(one, ", ".join(sorted(strange))))
    return lines, ATTEMPTS


# endregion
# region: same-alone
def shown(output):
    """The output as text, without addresses in memory."""
    return re.sub(r"0x[0-9a-fA-F]+", "0x", repr(output))


def check_alone(caller):
    """The same input must give the same output alone and in company."""
    expected = {}
    for number in range(min(ATTEMPTS, len(CALL["args"]))):
        alone = [Attempt(number), Attempt(number)]
        caller.call(alone, concurrency=1)
        outputs = {shown(one.output) for one in answered(alone)}
        if len(outputs) > 1:
            cannot_test("the same input gives different outputs alone: " + " and ".join(outputs))
        expected[number] = outputs.pop()
    attempts = make_attempts()
    caller.call(attempts)
    lines = []
    for one in answered(attempts):
        alone = expected[one.number % len(CALL["args"])]
        if shown(one.output) != alone:
            lines.append(f"{one} gave {shown(one.output)}, alone {alone}")
    return lines, ATTEMPTS


# endregion
# region: growth
BLOCKS = 20
# With fewer attempts a block, what the first of them set up looks like growth.
LEAST_BLOCK = 10
# Student's t, 97.5 %, for the means of 20 blocks.
T_QUANTILE = 2.093
# What an attempt may leave behind for ever, on average: bytes, or things of the other kinds.
ALLOWED = {"rss": 64, "objects": 0.05, "blocks": 0.3, "fds": 0.02, "tasks": 0.02, "threads": 0.02}


def readings(caller):
    gc.collect()
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[1])
    return {
        "rss": pages * os.sysconf("SC_PAGE_SIZE"),
        "objects": len(gc.get_objects()),
        "blocks": sys.getallocatedblocks(),
        "fds": len(os.listdir("/proc/self/fd")),
        "tasks": 0 if caller.loop is None else len(asyncio.all_tasks(caller.loop)),
        "threads": threading.active_count(),
    }


def check_growth(caller):
    """After a warm-up, further attempts must leave nothing behind: the mean growth of blocks."""
    size = ATTEMPTS // (BLOCKS + 5)
    if size < LEAST_BLOCK:
        cannot_test(f"growth takes {LEAST_BLOCK * (BLOCKS + 5)} attempts at least, not {ATTEMPTS}")
    caller.call([Attempt(number) for number in range(5 * size)])
    # Made beforehand: what is kept of the readings must not grow itself.
    kept = {name: array.array("d", [0.0] * (BLOCKS + 1)) for name in ALLOWED}
    for block in range(BLOCKS + 1):
        for name, value in readings(caller).items():
            kept[name][block] = value
        if block < BLOCKS:
            caller.call([Attempt(number) for number in range(size)])
    lines = []
    for name in ORACLE.get("of", list(ALLOWED)):
        read = kept[name]
        steps = [(after - before) / size for before, after in zip(read, read[1:])]
        mean = sum(steps) / BLOCKS
        spread = (sum((one - mean) ** 2 for one in steps) / (BLOCKS - 1)) ** 0.5
        half = T_QUANTILE * spread / BLOCKS**0.5
        grew = sum(one > 0 for one in steps)
        # A few large steps are a table that was made larger: a leak grows in most blocks.
        if mean - half > ALLOWED[name] and grew > BLOCKS / 2:
            text = "{}: +{:.4g} an attempt (95 % interval {:.4g} to {:.4g}), in {} of {} blocks"
            lines.append(text.format(name, mean, mean - half, mean + half, grew, BLOCKS))
    return lines, len(ORACLE.get("of", ALLOWED))


# endregion
# region: no-progress
def check_progress(caller):
    """Some attempt must end every few seconds, until all have."""
    within = ORACLE.get("within_s", 10)
    attempts = make_attempts()

    def watch():
        done, since = -1, time.monotonic()
        while done < ATTEMPTS:
            now = sum(one.is_done for one in attempts)
            if now > done:
                done, since = now, time.monotonic()
            elif time.monotonic() - since > within:
                stuck = [f"{one} has not ended" for one in attempts if not one.is_done]
                report([f"nothing ended within {within} s"] + stuck[1:], ATTEMPTS)
                sys.stdout.flush()
                os._exit(1)
            time.sleep(0.05)

    threading.Thread(target=watch, daemon=True).start()
    caller.call(attempts)
    return [], ATTEMPTS


# endregion
# region: head-of-line
BEAT = 0.005
# Who has waited this many seconds over the limit has waited too long: the rest is not waited for.
PATIENCE = 10


class Heartbeat:
    """Something else that wants to run every few milliseconds, and how late it was."""

    def __init__(self, caller, most):
        self.late = []
        self.most = most
        self.is_over = False
        if caller.loop is None:
            threading.Thread(target=self.beat_in_thread, daemon=True).start()
        else:
            self.task = caller.loop.create_task(self.beat_in_task())

    def note(self, since):
        now = time.monotonic()
        self.late.append((now, now - since - BEAT))

    def beat_in_thread(self):
        while not self.is_over:
            since = time.monotonic()
            time.sleep(BEAT)
            self.note(since)

    async def beat_in_task(self):
        while not self.is_over:
            since = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, self.most)
            await asyncio.sleep(BEAT)
            self.note(since)

    def stop(self, caller):
        # One more beat: what came last may have kept it.
        if caller.loop is None:
            time.sleep(2 * BEAT)
        else:
            caller.loop.run_until_complete(asyncio.sleep(2 * BEAT))
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.is_over = True


def check_others(caller):
    """Something else must get its turn while attempts run."""
    limit = ORACLE.get("limit_s", 0.1)
    attempts = make_attempts()
    most = limit + PATIENCE

    def give_up(*_):
        running = [one for one in attempts if one.began and not one.is_done]
        if running:
            report([f"another has waited {most} s while {one} ran" for one in running], ATTEMPTS)
            sys.stdout.flush()
            os._exit(1)

    # A signal comes to a loop that is stuck, where a task does not.
    signal.signal(signal.SIGALRM, give_up)
    heartbeat = Heartbeat(caller, most)
    caller.call(attempts)
    heartbeat.stop(caller)
    waits = [(at - delay, at, delay) for at, delay in heartbeat.late if delay > limit]
    lines = []
    for one in answered(attempts):
        kept = [delay for start, end, delay in waits if one.began < end and start < one.ended]
        if kept:
            lines.append(f"another waited {max(kept):.3f} s while {one} ran")
    return lines, ATTEMPTS


# endregion
# region: transactions
# SQLSTATE: deadlock_detected, serialization_failure.
AT_ODDS = {"40P01": "deadlock", "40001": "serialization failure"}


def sqlstate(error):
    """What the database called an error, or the one that it came of: drivers differ."""
    for one in (error, getattr(error, "orig", None), error.__cause__):
        first = one.args[0] if getattr(one, "args", None) else None
        codes = [getattr(one, name, None) for name in ("sqlstate", "pgcode")]
        codes.append(first.get("C") if isinstance(first, dict) else None)
        for code in codes:
            if isinstance(code, str):
                return code
    return None


def check_transactions(caller):
    """The database may not end an attempt because of what another does at the same time."""
    attempts = make_attempts()
    caller.call(attempts)
    lines = []
    for one in attempts:
        code = None if one.error is None else sqlstate(one.error)
        if code in AT_ODDS:
            lines.append(f"{one}: {AT_ODDS[code]} ({code})")
        elif one.error is not None:
            cannot_test("not of other transactions: " + raised(one))
    return lines, ATTEMPTS


# endregion
# region: script
def check_by_script(caller):
    """A program reads all attempts as lines of JSON: 0 right, 1 wrong, a line for each failure."""
    attempts = make_attempts()
    caller.call(attempts)
    lines = "".join(
        json.dumps(
            {
                "attempt": one.number,
                "args": one.args,
                "output": one.output,
                "error": None if one.error is None else raised(one),
            },
            default=repr,
        )
        + "\n"
        for one in attempts
    )
    script = os.path.join(HERE, ORACLE["script"])
    command = [sys.executable, script] if script.endswith(".py") else [script]
    ended = subprocess.run(command, input=lines.encode(), stdout=subprocess.PIPE, check=False)
    if ended.returncode not in (0, 1):
        cannot_test("{} ended with {}".format(ORACLE["script"], ended.returncode))
    said = ended.stdout.decode(errors="replace").split("\n")
    wrong = [line for line in said if line.strip()] if ended.returncode == 1 else []
    if ended.returncode == 1 and not wrong:
        wrong = ["{} found it wrong".format(ORACLE["script"])]
    return wrong[:ATTEMPTS], ATTEMPTS


# endregion
CHECKS = {
    # region: exception
    "exception": check_exceptions,
    # endregion
    # region: lost-update
    "lost-update": check_updates,
    # endregion
    # region: cross-talk
    "cross-talk": check_answers,
    # endregion
    # region: same-alone
    "same-alone": check_alone,
    # endregion
    # region: growth
    "growth": check_growth,
    # endregion
    # region: no-progress
    "no-progress": check_progress,
    # endregion
    # region: head-of-line
    "head-of-line": check_others,
    # endregion
    # region: transactions
    "transactions": check_transactions,
    # endregion
    # region: script
    "script": check_by_script,
    # endregion
}


def report(lines, total):
    for line in lines[:5]:
        print(line)
    print(f"Errors: {len(lines)} / {total}")


def main():
    random.seed(SEED)
    sys.path.insert(0, os.path.join(HERE, CALL.get("path", ".")))
    if ORACLE["kind"] not in CHECKS:
        cannot_test("this script has no check for " + ORACLE["kind"])
    function = resolve(CALL["target"])
    setup = resolve(CALL["setup"]) if "setup" in CALL else None
    try:
        caller = Caller(function, setup)
    except Exception as error:
        cannot_test(f"setup: {type(error).__name__}: {error}")
    lines, total = CHECKS[ORACLE["kind"]](caller)
    report(lines, total)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
