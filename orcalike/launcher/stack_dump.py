"""What a process shows on SIGUSR1: the stacks of its threads, and what each of them waits for.

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


def install() -> None:
    """Make SIGUSR1 print stacks and waits to stderr, unless the program handles it itself.

    Does nothing off the main thread (Python sets signal handlers there alone), and nothing
    the second time.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL:
        return
    signal.signal(signal.SIGUSR1, _on_signal)
    faulthandler.register(signal.SIGUSR1, all_threads=True, chain=True)


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
