"""Faults that were planted, each beside its healthy twin."""

import asyncio
import threading
import time

lock = threading.Lock()
balance = 0
free = [1, 2, 3]
kept = []
last = None


def read_balance():
    return balance


def deposit():
    global balance
    before = balance
    time.sleep(0.001)
    balance = before + 1


def deposit_locked():
    with lock:
        deposit()


async def deposit_in_tasks():
    global balance
    before = balance
    await asyncio.sleep(0)
    balance = before + 1


async def deposit_at_once():
    global balance
    await asyncio.sleep(0)
    balance += 1


def take():
    """Check, then act: more callers than items."""
    if free:
        time.sleep(0.001)
        one = free.pop()
        time.sleep(0.001)
        free.append(one)


def take_locked():
    with lock:
        take()


async def echo_shared(text):
    """An answer through a variable that all share."""
    global last
    last = text
    await asyncio.sleep(0)
    return {"answer": last}


async def echo(text):
    own = text
    await asyncio.sleep(0)
    return {"answer": own}


busy = 0


async def batched(number):
    """As arithmetic that depends on the size of a batch."""
    global busy
    busy += 1
    await asyncio.sleep(0)
    answer = number + (0 if busy == 1 else 1e-9)
    busy -= 1
    return answer


async def unbatched(number):
    await asyncio.sleep(0)
    return float(number)


def leak():
    kept.append([object()])


def leak_not():
    return [object()]


async def leak_tasks():
    kept.append(asyncio.ensure_future(asyncio.sleep(3600)))


first, second = threading.Lock(), threading.Lock()
turn = [0]


def lock_in_turns():
    """Two locks in one order or the other."""
    turn[0] += 1
    one, other = (first, second) if turn[0] % 2 else (second, first)
    with one:
        time.sleep(0.002)
        with other:
            pass


def lock_in_order():
    with first:
        time.sleep(0.002)
        with second:
            pass


async def block():
    time.sleep(0.3)


async def block_long():
    time.sleep(20)


async def block_not():
    await asyncio.sleep(0.3)


async def echo_none():
    await asyncio.sleep(0)
