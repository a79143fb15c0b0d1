"""A time limit for a test: it fails, and shows all stacks and waiting calls, instead of hanging."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from orcalike.launcher import stack_dump
from orcalike.testing.reports import report

GRACE = 5.0
"""Seconds after which a test that goes on is interrupted again."""
INTERRUPTIONS = 3
"""A test that does not end after so many ends with its whole process."""
REPORT_WITHIN = 10.0
"""Seconds in which a reporter must have given its text."""


class TimeLimit:
    """Blocks of the main thread that end within `seconds`, or are interrupted by `fail(text)`.

    `reporters` give more text: what processes say of themselves, for example.
    """

    def __init__(self, seconds: float, fail: Callable[[str], NoReturn], what: str) -> None:
        self.seconds = seconds
        self.reporters: list[Callable[[], str]] = []
        self._fail = fail
        self._what = what
        self._text = ""
        self._is_over = False
        self._ends_at = 0.0
        self._changed = threading.Condition()
        self._before: Any = None
        self._on_main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Self:
        if self._on_main:
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        self._text = ""
        self._is_over = False
        self.restart()
        self._thread = threading.Thread(target=self._watch, name="orcalike time limit", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()
            self._thread.join()
        finally:  # it may be interrupted itself
            if self._on_main:
                signal.signal(signal.SIGINT, self._before)

    def restart(self, least: float = 0.0) -> None:
        """Give the block `seconds` from now on, and `least` at the least."""
        with self._changed:
            self._ends_at = time.monotonic() + max(self.seconds, least)
            self._changed.notify_all()

    def of_at_least(self, seconds: float) -> TimeLimit:
        """The same for another block, which may take `seconds` at the least."""
        limit = TimeLimit(max(self.seconds, seconds), self._fail, self._what)
        limit.reporters = self.reporters
        return limit

    def _watch(self) -> None:
        with self._changed:
            while not self._is_over and (rest := self._ends_at - time.monotonic()) > 0:
                self._changed.wait(rest)
            if self._is_over:
                return
        head = f"{self._what} did not end within {self.seconds:g} s"
        self._text = "\n".join([head, *(_text_of(each) for each in (report, *self.reporters))])
        for _ in range(INTERRUPTIONS):
            if self._on_main and not self._is_over:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            with self._changed:
                if self._changed.wait_for(lambda: self._is_over, GRACE):
                    return
        self._end_process()

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        """SIGINT: of this limit, or the one of Ctrl-C, which does what it did before."""
        if self._text:
            tasks = [f"  {line}" for line in stack_dump.tasks()]
            self._fail("\n".join([self._text, *tasks]))
        if callable(self._before):
            self._before(number, frame)

    def _end_process(self) -> None:
        """The test does not react: nothing but the end of the process is left."""
        for stream in (sys.__stderr__, sys.__stdout__):
            if stream is not None:
                stream.flush()
        text = f"\n{self._text}\nand goes on after {INTERRUPTIONS} interruptions: pytest ends\n"
        os.write(2, text.encode(errors="backslashreplace"))
        os._exit(1)


def _text_of(reporter: Callable[[], str]) -> str:
    """What a reporter says; one that fails, or that does not end, keeps nothing from going on."""
    texts: list[str] = []

    def ask() -> None:
        try:
            texts.append(reporter())
        except Exception as error:  # noqa: BLE001 - it is shown
            texts.append(f"no report: {error!r}")

    thread = threading.Thread(target=ask, name="orcalike report", daemon=True)
    thread.start()
    thread.join(REPORT_WITHIN)
    return texts[0] if texts else f"no report within {REPORT_WITHIN:g} s"
