"""What a process shows on SIGUSR1, or another signal: the stacks of its threads, and what each of them waits for.

Two handlers share the work. `faulthandler` prints the stacks from C, at once, whatever the
threads are doing, also if the main thread is stuck in a call that never returns to Python.
It then passes the signal on to Python's own handler, which adds the waits and the asyncio
tasks as soon as the main thread runs Python again or checks for signals.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from types import FrameType

from orcalike.runtime import waits


def install(*numbers: signal.Signals) -> None:
    """Make these signals print stacks and waits to stderr, but those that the program handles itself.

    Off the main thread the waits are left out: Python sets signal handlers there alone. Does nothing the
    second time.
    """
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_DFL or number in _installed:
            continue
        _installed.add(number)
        on_main = threading.current_thread() is threading.main_thread()
        if on_main:
            signal.signal(number, _on_signal)
        faulthandler.register(number, all_threads=True, chain=on_main)


_installed: set[signal.Signals] = set()


def write_waits() -> None:
    """Write what each thread waits for, and each asyncio task's place, to stderr.

    It goes to the file descriptor: the program may be in the middle of a `print`, and
    Python's buffered streams may not be entered twice.
    """
    rank = os.environ.get("ORCALIKE_RANK")
    name = f"rank {rank} (pid {os.getpid()})" if rank else f"pid {os.getpid()}"
    lines = waits.report() or ["no thread waits for orcalike"]
    text = "\n".join([f"{name}:", *(f"  {line}" for line in lines + tasks()), ""])
    data = text.encode(errors="backslashreplace")
    while data:
        data = data[os.write(2, data) :]


def tasks() -> list[str]:
    """One line for each task of the loop that this thread runs."""
    if "asyncio" not in sys.modules:
        return []
    import asyncio

    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:  # no loop runs on this thread
        return []
    return sorted(f"task {task.get_name()} {_place(task.get_stack(limit=1))}" for task in tasks)


def _place(stack: list[FrameType]) -> str:
    if not stack:
        return "has not begun"
    frame = stack[-1]
    return f'at File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_name}'


def _on_signal(signum: int, frame: FrameType | None) -> None:
    write_waits()
