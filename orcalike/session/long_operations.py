"""Operations that do not end: within a second the log names them, and another thread receives (D07).

While an operation runs where messages are received, its member receives nothing, and no thread of
orcalike's that runs Python notices. The thread of the heartbeats does, and writes to an eventfd; a
thread that does nothing else logs which operation it is, and where it is, and has a new thread take
the place of the one that runs it: now, or as soon as that can be.

In other threads operations run, too: in pop-up threads, what these let run as they let a mutex go, and
what a program's thread lets run after a read. These hold up their objects alone. No event says that
such a one has not ended, so the same thread looks at the objects' mutexes a few times a second as long
as one is held, and sleeps otherwise. An operation that is declared with `popup=True` may take as long
as it likes.

One whose thread has waited for a processor meanwhile has not run for long (`thread_account`).
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
import time
import traceback
from types import CodeType, FrameType
from typing import TYPE_CHECKING, NamedTuple

from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.invocation import name_of
from orcalike.runtime.operation import Operation
from orcalike.runtime.relief import receiving, relieve, running, watch_running
from orcalike.runtime.replica import Replica
from orcalike.session.thread_account import ThreadAccount
from orcalike.transport.drivers.deferral import OwnThread
from orcalike.transport.drivers.pump import Pump

if TYPE_CHECKING:
    from orcalike.runtime.invoked import Titled

AGAIN = 0.5
"""Seconds after which it is tried again, while an operation holds its member up."""

LOOK = 0.2
"""Seconds between looks at what other threads run, while one of them holds a mutex."""

STARVED_LOOK = 0.02
"""Seconds between looks whether an operation has had a processor since it was noticed."""

LONG = 0.5
"""Seconds for which an operation has been seen to run when the log names it."""

QUIET = 10.0
"""Seconds in which an operation of an object is named once, if it is called again and again."""

_log = logging.getLogger("orcalike")


class Run(NamedTuple):
    """An operation that runs now."""

    #: Of the object.
    replica: Replica
    #: An operation, or what `name_of` can name; None for a read in its caller's thread.
    operation: Titled | str | None
    #: Which runs it; None if that is not known.
    thread: int | None
    #: What tells it from the next run of the same operation.
    mark: object

    @property
    def key(self) -> tuple[int, str]:
        """Object and operation."""
        return self.replica.number, "" if self.operation is None else name_of(self.operation)


class Sight(NamedTuple):
    """The first look at a run in another thread."""

    #: Of the run.
    mark: object
    #: When that was.
    since: float
    account: ThreadAccount


class LongOperations:
    """The watch over one member's operations, with a thread of its own."""

    def __init__(self, runtime: Runtime, pump: Pump) -> None:
        self._runtime, self._pump = runtime, pump
        self._wakeup = os.eventfd(0, os.EFD_CLOEXEC)
        self._closed = self._threads_run = False
        self._closing = threading.Lock()
        """Held while `_wakeup` is used from outside, and while it is closed."""
        self._seen: dict[tuple[int, str], Sight] = {}
        """What runs in other threads."""
        self._named: dict[tuple[int, str], tuple[object, float]] = {}
        """What the log has named: the run, and when that was."""
        self._thread = OwnThread(self._run, "orcalike watch")
        self._thread.start()
        runtime.sender.on_threads = self._begin_to_look
        watch_running(runtime, pump.heartbeat, self._wakeup)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        holds_up = False
        while True:
            wait = LOOK if self._threads_run else AGAIN if holds_up else None
            if poll.poll(None if wait is None else wait * 1000):
                os.eventfd_read(self._wakeup)
                if self._closed:
                    return
                holds_up = self._report() or holds_up
            elif holds_up:
                holds_up = self._try_again()
            if self._threads_run:
                self._look()

    # Where messages are received.

    def _receiving(self) -> tuple[Run, float] | None:
        """What runs where messages are received, and for how many seconds; None for nothing."""
        found = receiving(self._runtime, self._pump)
        if found is None:
            return None
        thread, took = found
        for run in map(Run._make, running(self._runtime, self._pump)[0]):
            if run.thread == thread:
                return run, took / 1e9
        return None

    def _report(self) -> bool:
        """Name the operation that runs, and have another thread receive; whether none can as yet."""
        found = self._long_receiving()
        if found is None:
            return False
        run, took = found
        stack = stack_of(run.thread)
        relieved = self._relieve()
        self._note(run)
        _log.warning(
            "%s of %r has run for %.1f s where messages are received, and has not ended: %s%s",
            name_of(run.operation),
            run.replica.name,
            took,
            "what is for its object waits until it has"
            if relieved
            else "this member receives nothing meanwhile",
            stack,
        )
        return not relieved

    def _long_receiving(self) -> tuple[Run, float] | None:
        """What has run for long where messages are received; it is waited for while it has no processor."""
        found = self._receiving()
        if found is None or found[1] < LONG:
            return None
        account = ThreadAccount(found[0].thread)
        while found is not None and found[1] >= LONG:
            if account.has_run() or self._closed:
                return found
            time.sleep(STARVED_LOOK)
            found = self._receiving()
        return None

    def _try_again(self) -> bool:
        """What holds this member up may be past the moment at which no thread can take its place."""
        found = self._receiving()
        if found is None or found[1] < AGAIN:
            return False  # that one has ended, and this is another
        if not self._relieve():
            return True
        run, _ = found
        self._note(run)
        _log.warning(
            "another thread receives; what is for %r waits for %s",
            run.replica.name,
            name_of(run.operation),
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

    def _note(self, run: Run) -> None:
        """It was named; what another thread has relieved has another mark."""
        for other in map(Run._make, running(self._runtime, self._pump)[0]):
            if other.key == run.key:
                self._add_named(run.key, other.mark)

    # In other threads.

    def _begin_to_look(self) -> None:
        """A thread that does not receive has an object's mutex, or may soon have it."""
        self._threads_run = True
        with self._closing:
            if not self._closed:
                os.eventfd_write(self._wakeup, 1)

    def _look(self) -> None:
        """Name what has run in another thread for long; nothing is looked at until something may."""
        self._runtime.sender.threads_watched = False
        runs, held = running(self._runtime, self._pump)
        receives = receiving(self._runtime, self._pump)
        now = time.monotonic()
        seen, self._seen = self._seen, {}
        for run in map(Run._make, runs):
            if may_take_long(run.operation) or (receives and run.thread == receives[0]):
                continue
            sight = seen.get(run.key)
            if sight is None or sight.mark != run.mark:
                sight = Sight(run.mark, now, ThreadAccount(run.thread))
            self._seen[run.key] = sight
            took = now - sight.since
            if took >= LONG and self._is_news(run, now) and sight.account.has_run():
                self._name(run, took)
        self._threads_run = self._runtime.sender.threads_watched = held

    def _is_news(self, run: Run, now: float) -> bool:
        """Whether the log has not named this run, nor the operation a short time ago."""
        mark, when = self._named.get(run.key, (None, -QUIET))
        return mark != run.mark and now - when >= QUIET

    def _name(self, run: Run, took: float) -> None:
        operation, thread = run.operation, run.thread
        if operation is None:
            operation, thread = reader_of(run.replica)
        self._add_named(run.key, run.mark)
        _log.warning(
            "%s of %r has run for %.1f s, and has not ended: what is for its object waits until it "
            "has%s",
            "a read" if operation is None else name_of(operation),
            run.replica.name,
            took,
            stack_of(thread),
        )

    def _add_named(self, key: tuple[int, str], mark: object) -> None:
        """The log names it; what was named long ago and is not known to run is forgotten."""
        now = time.monotonic()
        self._named = {
            each: (other, when)
            for each, (other, when) in self._named.items()
            if now - when < QUIET or each in self._seen
        }
        self._named[key] = mark, now

    def close(self) -> None:
        """The group was left."""
        self._runtime.sender.on_threads = None
        watch_running(self._runtime, self._pump.heartbeat, -1)
        with self._closing:
            self._closed = True
        os.eventfd_write(self._wakeup, 1)
        self._thread.join()
        os.close(self._wakeup)


def may_take_long(operation: Titled | str | None) -> bool:
    """Whether it was declared so: one that was too slow where messages are received was not."""
    return isinstance(operation, Operation) and (operation.popup and operation.inline is None)


def reader_of(replica: Replica) -> tuple[Titled | None, int | None]:
    """(operation, thread) of the read of an object that runs in its caller's thread."""
    reads: dict[CodeType, Titled] = {
        operation.function.__code__: operation
        for operation in (() if replica.info is None else replica.info.operations)
        if operation.kind == "read"
    }
    for thread, frame in sys._current_frames().items():
        each: FrameType | None = frame
        while each is not None:
            operation = reads.get(each.f_code)
            if operation and any(value is replica.object for value in each.f_locals.values()):
                return operation, thread
            each = each.f_back
    return None, None


def stack_of(thread: int | None) -> str:
    """Where a thread is, for the end of a line in the log."""
    frame = sys._current_frames().get(thread or 0)
    if frame is None:
        return ""
    lines = traceback.StackSummary.extract(
        (one, line) for one, line in reversed(list(traceback.walk_stack(frame)))
    )
    return "; it is in\n" + "".join(lines.format()).rstrip()
