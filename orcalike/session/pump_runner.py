"""What runs a member's pump: a thread of its own, an event loop, or the program's calls while they wait."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from orcalike.session.deadline import Deadline
from orcalike.session.switch_interval import switching
from orcalike.transport.drivers.deferral import OwnThread
from orcalike.transport.drivers.pump import Pump

if TYPE_CHECKING:
    import asyncio

DRAIN_WITHIN = 1.0
"""Seconds in which peers have to read what is still to be sent, where no thread of its own waits for that."""


class PumpRunner:
    """Runs a pump from when it is started to its end; until then, or without, the program's calls do."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loops_thread = 0

    def start_thread(self) -> None:
        """Run it on a thread of its own from now on."""
        self._thread = OwnThread(self._pump.run, "orcalike")
        self._thread.start()
        switching.shorten()

    def serve_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run it on the event loop of this thread from now on."""
        self._loop = loop
        self._loops_thread = threading.get_ident()
        self._pump.serve_on(loop)

    def loop_here(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that runs it, if that is the one of this thread."""
        return self._loop if threading.get_ident() == self._loops_thread else None

    def stop(self, within: float) -> None:
        """Run it no more, after what is still to be sent; never takes longer than `within` seconds."""
        deadline = Deadline(within)
        pump = self._pump
        if self._loop is not None:
            self._loop.remove_reader(pump.fileno())
        pump.stopped = True
        if self._thread is not None:
            pump.ring()
            (pump.thread or self._thread).join(within)  # else an operation does not end
            switching.restore()
        elif pump.call_within(within, lambda now: None):
            pump.drain(deadline.within(DRAIN_WITHIN))
