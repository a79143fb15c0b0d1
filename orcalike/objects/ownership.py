"""Which thread or task of which member calls: what owns a lock, and what took an item."""

from __future__ import annotations

import itertools
import sys
import threading
from typing import TypeAlias

Runner: TypeAlias = int
"""A thread, or a task of asyncio, of one process."""


_attempts = itertools.count(1)


def next_attempt() -> int:
    """A number for a call of this process that may be given up: no other of its calls has it."""
    return next(_attempts)


_free_slots: list[int] = []
_slots = itertools.count()


def take_slot() -> int:
    """The number of a slot for one call of this process at a time: as many as run at once."""
    try:
        return _free_slots.pop()
    except IndexError:
        return next(_slots)


def give_slot_back(slot: int) -> None:
    """The call is over, or given up: the next one may have its slot."""
    _free_slots.append(slot)


def this_runner() -> Runner:
    """The task that runs, negative, or else this thread."""
    asyncio = sys.modules.get("asyncio")  # without it there are no tasks
    loop = asyncio._get_running_loop() if asyncio is not None else None
    task = asyncio.current_task(loop) if asyncio is not None and loop is not None else None
    return threading.get_ident() if task is None else -id(task)
