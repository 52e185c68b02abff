"""A request whose client went away while something that is shielded ends: waiting must not keep the processor busy."""

import time

import anyio


async def flush():
    with anyio.CancelScope(shield=True):
        await anyio.sleep(0.5)


async def abandoned():
    used = time.process_time()
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with anyio.create_task_group() as group:
            group.start_soon(flush)
    used = time.process_time() - used
    # A spin takes what it is given, on a busy machine a tenth of a processor; a wait takes some milliseconds.
    assert used < 0.03, f"{used:.2f} s of CPU were used to wait for half a second"
