"""
Another tool on a planted race: peer.py <simloom|hypothesis|frontrun> <file> <runs>. Prints a line of JSON: whether it found it, after how many
schedules and seconds, and the steps of its smallest case (null where it gives none).
"""

import asyncio
import json
import runpy
import sys
import time

tool, path, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.argv = [path]
main = runpy.run_path(path, run_name="race")["main"]
# A run takes a millisecond: one that takes this long hangs.
LIMIT = 2


async def checked():
    assert await main(), "the race was lost"


def simloom():
    """The unmodified program on its loop; steps are the callbacks that ran out of order."""
    import simloom

    found = simloom.explore(checked, runs=runs)
    if found.first_failure is None:
        return False, found.runs, None
    return True, found.runs, lambda: simloom.shrink(checked, found.first_failure).deviations


def hypothesis():
    """Every sleep takes some turns more, as many as it draws; steps are the sleeps that do in its smallest example."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st

    sleep = asyncio.sleep
    tried = []

    async def once(data):
        async def later(delay, result=None):
            turns = data.draw(st.integers(0, 8))
            tried[-1].append(turns)
            for _ in range(turns):
                await sleep(0)
            return await sleep(delay, result)

        asyncio.sleep = later
        try:
            await asyncio.wait_for(checked(), LIMIT)
        finally:
            asyncio.sleep = sleep

    first = []

    @settings(
        max_examples=runs,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(st.data())
    def look(data):
        tried.append([])
        try:
            asyncio.run(once(data))
        except (AssertionError, Exception) as error:
            if type(error).__module__.startswith("hypothesis"):
                raise
            if not first:
                first.append((len(tried), time.perf_counter()))
            raise AssertionError("lost") from None

    try:
        look()
    except BaseException:
        if not first:
            raise
    if not first:
        return False, len(tried), None
    steps = sum(1 for turns in tried[-1] if turns)
    return True, first[0][0], (lambda: steps), first[0][1]


class Gathered:
    """A program run up to where it gathers several coroutines, so that each can be a worker; then it is told what came of them."""

    def __init__(self):
        self.parts = None
        self.right = True
        self.ended = []
        gather, asyncio.gather = asyncio.gather, self.take
        try:
            self.program = main()
            self.drive(None)
        finally:
            asyncio.gather = gather
        self.ended = [None] * len(self.parts or [])

    async def take(self, *parts):
        self.parts = list(parts)
        return await Here()

    def drive(self, value):
        """Turns of the loop pass at once; ends where the program gathers, or has ended."""
        try:
            found = self.program.send(value)
            while found is not Here:
                found = self.program.send(None)
        except StopIteration as end:
            self.right = end.value
        except Exception:
            self.right = False

    def holds(self):
        self.drive(self.ended)
        return self.right


class Here:
    def __await__(self):
        return (yield Here)


def frontrun():
    """What the program gathers are its workers, by its own default strategy; a program that gathers nothing has none to give it."""
    import frontrun

    count = len(Gathered().parts or [])
    if count < 2:
        sys.exit("it gathers no coroutines that could be workers")

    def worker(number):
        async def work(state):
            try:
                state.ended[number] = await state.parts[number]
            except Exception:
                state.right = False

        return work

    result = frontrun.explore(
        setup=Gathered,
        workers=[worker(number) for number in range(count)],
        invariant=lambda state: state.right and state.holds(),
        max_executions=runs,
        total_timeout=60,
    )
    result = asyncio.run(result) if asyncio.iscoroutine(result) else result
    is_found = result.property_holds is False
    return is_found, result.num_explored, (lambda: len(result.counterexample or [])) if is_found else None


began = time.perf_counter()
is_found, tried, smallest, *ended = globals()[tool]()
seconds = (ended[0] if ended else time.perf_counter()) - began
steps = smallest() if smallest else None
print(json.dumps({"found": is_found, "tried": tried, "seconds": seconds, "steps": steps}))
