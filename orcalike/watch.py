"""Waiting for what happens to a group: in a thread, or in a coroutine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from orcalike.runtime import waits


class Watch:
    """Who waits until something holds; `notify` has all of them look again."""

    def __init__(self) -> None:
        self._watchers: list[Callable[[], None]] = []

    def notify(self) -> None:
        """Something has happened; from any thread."""
        for watcher in list(self._watchers):
            watcher()

    def wait(self, condition: Callable[[], bool], timeout: float | None, what: str) -> bool:
        """Wait in this thread until it holds (True), or the time is over."""
        changed = threading.Event()
        self._watchers.append(changed.set)
        end = None if timeout is None else time.monotonic() + timeout
        waits.enter("view", "", what)
        try:
            while not condition():
                rest = None if end is None else end - time.monotonic()
                if (rest is not None and rest <= 0) or not changed.wait(rest):
                    return condition()
                changed.clear()
            return True
        finally:
            waits.leave()
            self._watchers.remove(changed.set)

    async def wait_on_loop(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        """Wait in a coroutine until it holds (True), or the time is over."""
        import asyncio  # not at the top: only coroutines need it, and it takes long

        changed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def notify() -> None:
            loop.call_soon_threadsafe(changed.set)

        self._watchers.append(notify)
        try:
            async with asyncio.timeout(timeout):
                while not condition():
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            return condition()
        finally:
            self._watchers.remove(notify)
        return True
