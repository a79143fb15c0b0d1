"""Waiting for what happens to a group: in a thread, or in a coroutine."""

from __future__ import annotations

import time
from collections.abc import Callable

from orcalike.runtime import waits
from orcalike.transport.drivers.deferral import held
from orcalike.transport.drivers.driver import Waitable

SAY_EVERY = 10.0
"""Seconds between two lines of the log that say what a wait is for."""


class Waiting:
    """Callers that wait until something holds; `notify` has all of them look again.

    `attend(waitable, seconds)` has a thread wait, and says whether it is done. `say(what)` is called
    each 10 s while something is waited for.
    """

    def __init__(
        self, attend: Callable[[Waitable, float | None], bool], say: Callable[[str], None]
    ) -> None:
        self._attend = attend
        self._say = say
        self._watchers: list[Callable[[], None]] = []

    def notify(self) -> None:
        """Something has happened; from any thread."""
        for watcher in list(self._watchers):
            watcher()

    @held
    def wait(self, condition: Callable[[], bool], timeout: float | None, what: str) -> bool:
        """Wait in this thread until it holds (True), or the time is over."""
        end = None if timeout is None else time.monotonic() + timeout
        say_at = time.monotonic() + SAY_EVERY
        waits.enter("view", "", what)
        try:
            while True:
                changed = Waitable()
                watcher = changed.finish
                self._watchers.append(watcher)
                try:
                    if condition():
                        return True
                    now = time.monotonic()
                    if end is not None and now >= end:
                        return condition()
                    rest = say_at - now if end is None else min(say_at, end) - now
                    # One with a time limit runs no operations of others: they may not end.
                    serve = self._attend if end is None else Waitable.wait
                    if not serve(changed, max(rest, 0.0)) and time.monotonic() >= say_at:
                        self._say(what)
                        say_at += SAY_EVERY
                finally:
                    self._watchers.remove(watcher)
        finally:
            waits.leave()

    def pause(self, seconds: float) -> None:
        """Wait in this thread for so long."""
        self._attend(Waitable(), seconds)

    async def wait_on_loop(
        self, condition: Callable[[], bool], timeout: float | None, what: str
    ) -> bool:
        """Wait in a coroutine until it holds (True), or the time is over."""
        import asyncio  # not at the top: only coroutines need it, and it takes long

        changed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def notify() -> None:
            loop.call_soon_threadsafe(changed.set)

        def say() -> None:
            self._say(what)
            timers[0] = loop.call_later(SAY_EVERY, say)

        self._watchers.append(notify)
        timers = [loop.call_later(SAY_EVERY, say)]
        try:
            async with asyncio.timeout(timeout):
                while not condition():
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            return condition()
        finally:
            timers[0].cancel()
            self._watchers.remove(notify)
        return True
