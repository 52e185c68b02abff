"""Races that were planted, and their healthy twins."""

import asyncio
import threading
import time


class Account:
    def __init__(self):
        self.balance = 0


account = Account()
lock = threading.Lock()
free = [1, 2, 3]


def deposit():
    before = account.balance
    time.sleep(0.0005)
    account.balance = before + 1


def deposit_locked():
    with lock:
        deposit()


def take_and_return():
    """Check, then act: with more callers than items, one pops from an empty list."""
    if free:
        time.sleep(0.0005)
        one = free.pop()
        time.sleep(0.0005)
        free.append(one)


def take_and_return_locked():
    with lock:
        take_and_return()


async def take_and_return_in_tasks():
    if free:
        await asyncio.sleep(0)
        one = free.pop()
        await asyncio.sleep(0)
        free.append(one)


def balance():
    return account.balance
