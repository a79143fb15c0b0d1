"""Whether a thread of this process gets on, by the kernel's account of it (proc(5)).

On a busy machine a thread may have to wait long for a processor. What it was about to do has not run
meanwhile, however much time has passed.
"""

from __future__ import annotations

import os
import threading

RUN_NS = 100_000_000
"""Processor time after which what a thread does has run for long, ns."""

TASKS = "/proc/self/task"


class ThreadAccount:
    """What has become of a thread since now."""

    def __init__(self, thread: int | None, tasks: str | os.PathLike[str] = TASKS) -> None:
        """`thread` is its identity (`threading.get_ident`); None if it is not known."""
        self._folder = next(
            (
                os.path.join(tasks, str(each.native_id))
                for each in threading.enumerate()
                if each.ident == thread and each.native_id is not None
            ),
            None,
        )
        self._used_before = self._used()

    def has_run(self) -> bool:
        """Whether it has had a processor for `RUN_NS`, or waits for something else than for one.

        True as well if the kernel keeps no such account.
        """
        used = self._used()
        if used is None or self._used_before is None or not self._is_runnable():
            return True
        return used - self._used_before >= RUN_NS

    def _used(self) -> int | None:
        """Processor time, ns."""
        fields = self._read("schedstat").split()
        return int(fields[0]) if fields and fields[0].isdigit() else None

    def _is_runnable(self) -> bool:
        return self._read("stat").rpartition(")")[2].split()[:1] == ["R"]

    def _read(self, name: str) -> str:
        if self._folder is None:
            return ""
        try:
            with open(os.path.join(self._folder, name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:  # the thread has ended, or the kernel has no such file
            return ""
