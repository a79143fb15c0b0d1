"""Operations that do not end: within a second the log names them, and another thread receives (D07).

While an operation runs where messages are received, its member receives nothing, and no thread of
orcalike's that runs Python notices. The thread of the heartbeats does, and writes to an eventfd; a
thread that does nothing else logs which operation it is, and where it is, and has a new thread take
the place of the one that runs it: now, or as soon as that can be.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
import traceback
from types import CodeType, FrameType

from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.invocation import name_of
from orcalike.runtime.relief import relieve, running, watch_running
from orcalike.transport.drivers.deferral import OwnThread
from orcalike.transport.drivers.pump import Pump

AGAIN = 0.5
"""Seconds after which it is tried again, while an operation holds its member up."""

_log = logging.getLogger("orcalike")


class LongOperations:
    """The watch over one member's operations, with a thread of its own."""

    def __init__(self, runtime: Runtime, pump: Pump) -> None:
        self._runtime, self._pump = runtime, pump
        self._wakeup = os.eventfd(0, os.EFD_CLOEXEC)
        self._closed = False
        self._thread = OwnThread(self._run, "orcalike watch")
        self._thread.start()
        watch_running(runtime, pump.heartbeat, self._wakeup)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        holds_up = False
        while True:
            if poll.poll(AGAIN * 1000 if holds_up else None):
                os.eventfd_read(self._wakeup)
                if self._closed:
                    return
                holds_up = self._report()
            else:
                holds_up = self._try_again()

    def _report(self) -> bool:
        """Name the operation that runs, and have another thread receive; whether none can as yet."""
        found = running(self._runtime)
        if found is None:
            return False
        name, operation, took = found
        stack = stack_in(operation.function.__code__)
        relieved = self._relieve()
        _log.warning(
            "%s of %r has run for %.1f s where messages are received, and has not ended: %s%s",
            name_of(operation),
            name,
            took / 1e9,
            "what is for its object waits until it has"
            if relieved
            else "this member receives nothing meanwhile",
            f"; it is in\n{stack}" if stack else "",
        )
        return not relieved

    def _try_again(self) -> bool:
        """What holds this member up may be past the moment at which no thread can take its place."""
        found = running(self._runtime)
        if found is None or found[2] < AGAIN * 1e9:
            return False  # that one has ended, and this is another
        if not self._relieve():
            return True
        name, operation, _ = found
        _log.warning(
            "another thread receives; what is for %r waits for %s", name, name_of(operation)
        )
        return False

    def _relieve(self) -> bool:
        """Have a new thread take the place of the one that runs it; whether it has."""
        decided = threading.Event()
        taken = []

        def go_on() -> None:
            try:
                if relieve(self._runtime, self._pump):
                    taken.append(True)
            finally:
                decided.set()
            if taken:
                self._pump.go_on()

        OwnThread(go_on, "orcalike").start()
        decided.wait()
        return bool(taken)

    def close(self) -> None:
        """The group was left."""
        watch_running(self._runtime, self._pump.heartbeat, -1)
        self._closed = True
        os.eventfd_write(self._wakeup, 1)
        self._thread.join()
        os.close(self._wakeup)


def stack_in(code: CodeType) -> str:
    """From where this code runs, in whichever thread, down to where it is; "" if it does not run."""
    for frame in sys._current_frames().values():
        inside: list[FrameType] = []
        each: FrameType | None = frame
        while each is not None:
            inside.append(each)
            if each.f_code is code:
                lines = traceback.StackSummary.extract(
                    (one, one.f_lineno) for one in reversed(inside)
                )
                return "".join(lines.format()).rstrip()
            each = each.f_back
    return ""
