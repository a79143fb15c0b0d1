"""Which thread or task of which member calls: what owns a lock."""

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


def this_runner() -> Runner:
    """The task that runs, negative, or else this thread."""
    asyncio = sys.modules.get("asyncio")  # without it there are no tasks
    loop = asyncio._get_running_loop() if asyncio is not None else None
    task = asyncio.current_task(loop) if asyncio is not None and loop is not None else None
    return threading.get_ident() if task is None else -id(task)
