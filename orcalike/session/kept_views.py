"""The views to come, for one that iterates over them: `group.views()` and `group.aviews()`."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from queue import Empty, SimpleQueue

from orcalike.transport.view import View

VIEWS_MAX = 1024
"""Views that are kept for one iterator."""


class KeptViews:
    """The views that come after this was made; of those that were not read yet the newest are kept."""

    def __init__(self, listeners: list[Callable[[View | None], None]]) -> None:
        self._queue: SimpleQueue[View | None] = SimpleQueue()  # a signal's handler may put, too
        self._notify: Callable[[], object] = lambda: None
        known = weakref.ref(self)

        def put(view: View | None) -> None:
            kept = known()
            if kept is not None:
                kept.put(view)
            else:  # the iterator is gone, however it ended
                with contextlib.suppress(ValueError):  # another thread may have put, too
                    listeners.remove(put)

        listeners.append(put)

    def put(self, view: View | None) -> None:
        """This view has come; None: none will come any more."""
        if self._queue.qsize() >= VIEWS_MAX:
            self._take()
        self._queue.put(view)
        self._notify()

    def _take(self) -> tuple[View | None, ...]:
        """The next one, if it is there."""
        try:
            return (self._queue.get_nowait(),)
        except Empty:
            return ()

    def read(self) -> Iterator[View]:
        """Wait for each in this thread."""
        while (view := self._queue.get()) is not None:
            yield view

    async def read_on_loop(self) -> AsyncIterator[View]:
        """Wait for each in a coroutine."""
        import asyncio  # not at the top: only coroutines need it, and it takes long

        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def notify() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(arrived.set)

        self._notify = notify
        while True:
            arrived.clear()  # before it is looked whether there is one
            while taken := self._take():
                if taken[0] is None:
                    return
                yield taken[0]
            await arrived.wait()
