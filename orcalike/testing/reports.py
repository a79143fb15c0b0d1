"""What a process does that does not get on: the stacks of its threads, and why its calls wait."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from types import FrameType

from orcalike.runtime import waits

OF_PYTEST = ("/_pytest/", "/pluggy/")
"""In the paths of what calls a test."""
LOOK_WITHIN = 1.0
"""Seconds after which a group whose operation does not end is left out."""


def report(title: str = "") -> str:
    """The calls of this process that wait, each with its reason, and the stacks of its threads."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    lines = [*waits.report(), *_reasons()] or ["no call of orcalike waits"]
    sections = [f"{title or f'pid {os.getpid()}'}:", *(f"  {line}" for line in lines)]
    for ident, frame in sys._current_frames().items():
        name = names.get(ident, "of another library")
        if ident != threading.get_ident() and not name.startswith("orcalike"):
            stack = "".join(_stack(frame)).rstrip()
            sections.append(f"  stack of thread {name} (0x{ident:016x}):\n{stack}")
    return "\n".join(sections)


def _stack(frame: FrameType) -> list[str]:
    """A thread's stack, the oldest call first, without those that have called the test."""
    calls = traceback.extract_stack(frame)
    of_pytest = [
        at for at, call in enumerate(calls) if any(map(call.filename.__contains__, OF_PYTEST))
    ]
    return traceback.format_list(calls[max(of_pytest, default=-1) + 1 :] or calls)


def _reasons() -> list[str]:
    if "orcalike.group" not in sys.modules:  # to import it takes long, and there is no group
        return []
    from orcalike.group import reasons_of_waits

    return reasons_of_waits(LOOK_WITHIN)
