"""Python's signal handlers are put off while operations run on the main thread (DESIGN, section 7).

A handler that raises, as Ctrl-C's does, would otherwise end an operation in the middle, at this
replica alone. While a group is open, a handler that comes inside an operation has its signal raised
again as soon as the operation is over.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from orcalike.runtime.dispatch import running_place

PUT_OFF = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)

Handler = Callable[[int, FrameType | None], Any]


class PuttingOff:
    """Wraps the handlers that Python has now; `later(f)` has a driver call `f` between inputs."""

    def __init__(self, later: Callable[[Callable[[], None]], None]) -> None:
        self._later = later
        self._wrapped: dict[int, tuple[Handler, Handler]] = {}

    def install(self) -> None:
        """Wrap the handlers; outside of the main thread there are none to wrap."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in PUT_OFF:
            handler = signal.getsignal(number)
            if callable(handler):
                wrapper = self._wrap(handler)
                self._wrapped[number] = (handler, wrapper)
                signal.signal(number, wrapper)

    def remove(self) -> None:
        """Put the handlers back, but for those that the program has replaced meanwhile."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number, (handler, wrapper) in self._wrapped.items():
            if signal.getsignal(number) is wrapper:
                signal.signal(number, handler)
        self._wrapped.clear()

    def _wrap(self, handler: Handler) -> Handler:
        def put_off(number: int, frame: FrameType | None) -> None:
            if running_place() is None:
                handler(number, frame)
            else:
                self._later(lambda: signal.raise_signal(number))

        return put_off
