"""What a thread that must not run operations has another one do in the stacks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVarTuple

from orcalike.transport.drivers.driver import Driver, Waitable

_Given = TypeVarTuple("_Given")

_log = logging.getLogger("orcalike")


class Errand(Waitable):
    """An input of a stack, `function(*args, now)`, that the next thread which is free in the pump runs."""

    def __init__(
        self, pump: Driver, function: Callable[[*_Given, int], object], args: tuple[*_Given]
    ) -> None:
        def run(now: int) -> None:
            function(*args, now)

        self._pump = pump
        self._input: Callable[[int], None] = run
        self._withdrawn = False
        self._error: BaseException | None = None

    def done_within(self, seconds: float) -> bool:
        """Have it done; False if it has not begun in that time, and never will, or has not ended.

        Raises what the input raises.
        """
        self._pump.later(self._run)
        try:
            done = self.wait(seconds)
        finally:
            self._withdrawn = True
        if self._error is not None:
            raise self._error
        return done

    def _run(self) -> None:
        if not self._withdrawn:
            self._pump.call(self._enter)

    def _enter(self, now: int) -> None:
        try:
            if not self._withdrawn:
                self._input(now)
        except Exception as error:  # noqa: BLE001 - raised where it was asked for, or in the log
            if self._withdrawn:
                _log.exception("what has taken longer than its time limit has failed")
            self._error = error
        finally:
            self.finish()
