"""The processes that this member hosts: started for members that call `group.fork`, and ended with it.

One thread starts them and waits for what they say and for their ends. It lasts as long as they
do: the kernel kills a child when the thread that started it ends.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from orcalike.errors import OrcalikeError
from orcalike.runtime import registered, waits
from orcalike.runtime.forks import Forks, Request
from orcalike.transport.drivers.deferral import OwnThread
from orcalike.transport.drivers.driver import Waitable
from orcalike.transport.view import Member
from orcalike.transport.wording import listed

if TYPE_CHECKING:
    import selectors

    from orcalike.session.forked_process import Hosted, Hosting

HOSTED_MAX = 128
"""Processes that one member hosts at a time."""
GRACE = 2.0
"""Seconds that a process has to end after SIGTERM."""
END_WITHIN = 3 * GRACE
"""Seconds in which all of them have ended, one way or another."""
SAY_EVERY = 10.0
"""Seconds between two lines of the log that say for which processes leaving waits."""
REPORT_MAX = 1 << 16

_log = logging.getLogger("orcalike")


class _Orders:
    """What the thread is asked for; guarded by the lock of `HostedProcesses`."""

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.withdrawn: deque[tuple[int, int]] = deque()


class HostedProcesses:
    """All processes that one member hosts in one group; see `runtime.forks.Starting`."""

    def __init__(self, session: Hosting, forks: Forks) -> None:
        self._session, self._forks = session, forks
        self._lock = threading.Lock()
        self._orders = _Orders()
        self._thread: threading.Thread | None = None
        self._wake = -1
        self._hosted: list[Hosted] = []
        self._waiters: list[Waitable] = []
        self._selector: selectors.BaseSelector | None = None
        self._ends = False
        """This member leaves: what runs is to end, and nothing more is started."""
        self._kill_at: float | None = None

    # From other threads.

    def start(self, request: Request) -> None:
        """Start a process; on the thread that dispatches, so it only asks for it."""
        self._order(lambda orders: orders.requests.append(request))

    def withdraw(self, source: int, ticket: int) -> None:
        """End a process that has not joined yet."""
        if self._thread is not None:
            self._order(lambda orders: orders.withdrawn.append((source, ticket)))

    def _order(self, put: Callable[[_Orders], None]) -> None:
        with self._lock:
            put(self._orders)
            if self._thread is None:
                self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
                self._thread = OwnThread(self._serve, "orcalike forks")
                self._thread.start()
            else:
                os.eventfd_write(self._wake, 1)

    def describe(self) -> list[tuple[int | None, int, str]]:
        """Rank, number and function of each process that runs."""
        return [
            (each.rank, each.process.pid, each.request.function) for each in self._hosted.copy()
        ]

    def wait(self, attend: Callable[[Waitable, float], bool]) -> None:
        """Wait until all have ended; `attend(waitable, seconds)` waits, and says whether it is done."""
        waits.enter("end", "", "forked processes")
        try:
            while True:
                over = Waitable()
                with self._lock:
                    if self._thread is None:
                        return
                    self._waiters.append(over)
                while not attend(over, SAY_EVERY):
                    # To wait for its workers may be what a program does all day.
                    running = listed([each.describe() for each in self._hosted.copy()])
                    _log.info("leaving the group waits for %s", running or "the end of a process")
        finally:
            waits.leave()

    async def wait_on_loop(self) -> None:
        """The same, in a coroutine."""
        import asyncio  # not at the top: only coroutines need it, and it takes long

        def join(over: Waitable, seconds: float) -> bool:
            if (thread := self._thread) is not None:
                thread.join(seconds)
            return self._thread is not thread or thread is None

        await asyncio.to_thread(self.wait, join)

    def end(self) -> None:
        """End all that still run, and wait for that; nothing more is started."""
        if (thread := self._begin_to_end()) is not None:
            thread.join(END_WITHIN)

    async def end_on_loop(self) -> None:
        """The same, in a coroutine."""
        if (thread := self._begin_to_end()) is not None:
            import asyncio  # not at the top: only coroutines need it, and it takes long

            await asyncio.to_thread(thread.join, END_WITHIN)

    def _begin_to_end(self) -> threading.Thread | None:
        """Have all end that still run; the thread that does it, if any run."""
        self._ends = True
        if (thread := self._thread) is not None:
            self._order(lambda orders: None)
        return thread

    # On the thread.

    def _serve(self) -> None:
        """Until nothing is left to do."""
        import selectors  # few programs fork

        with selectors.DefaultSelector() as self._selector:
            self._selector.register(self._wake, selectors.EVENT_READ, self._clear)
            while True:
                self._take_orders()
                self._look_at_time()
                idle = 0.0 if not self._hosted else self._until_next()
                for key, _ in self._selector.select(idle):
                    if self._selector.get_map().get(key.fd) is key:
                        key.data()
                with self._lock:
                    if not self._hosted and not self._orders.requests:
                        self._finish()
                        return

    def _finish(self) -> None:
        """The thread is at its end; another order starts another one."""
        os.close(self._wake)
        self._thread, self._orders, self._kill_at = None, _Orders(), None
        for waiter in self._waiters:
            waiter.finish()
        self._waiters.clear()

    def _clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)

    def _take_orders(self) -> None:
        """Do what was asked for."""
        with self._lock:
            orders, self._orders = self._orders, _Orders()
        for request in orders.requests:
            if self._ends:
                self._answer(request, None, "it leaves the group")
            else:
                self._start(request)
        for key in orders.withdrawn:
            for each in self._hosted:
                if (each.request.source, each.request.ticket) == key and not each.is_in:
                    self._give_up(each, "the request was withdrawn")
        if self._ends and self._kill_at is None:
            self._kill_at = time.monotonic() + GRACE
            for each in self._hosted:
                each.process.terminate()

    def _until_next(self) -> float | None:
        times = [each.deadline for each in self._hosted if not each.answered]
        if self._kill_at is not None:
            times.append(self._kill_at)
        return max(min(times) - time.monotonic(), 0.0) if times else None

    def _look_at_time(self) -> None:
        now = time.monotonic()
        for each in self._hosted:
            if not each.answered and each.deadline <= now:
                from orcalike.session.forked_process import START_WITHIN  # as in `_serve`

                self._give_up(each, f"it has not joined within {START_WITHIN:g} s, and was ended")
        if self._kill_at is not None and self._kill_at <= now:
            self._kill_at = now + GRACE
            for each in self._hosted:
                each.process.kill()

    def _give_up(self, hosted: Hosted, why: str) -> None:
        hosted.answered = True
        hosted.process.kill()
        self._answer(hosted.request, None, why)

    def _answer(self, request: Request, member: Member | None, why: str) -> None:
        if member is None:
            _log.warning("fork of %s: %s", request.function, why)
        try:
            self._forks.answer(request, member, why)
        except OrcalikeError as error:
            _log.info("the outcome of a fork was not reported: %s", error)

    def _start(self, request: Request) -> None:
        if len(self._hosted) >= HOSTED_MAX:
            why = f"it hosts {HOSTED_MAX} processes already, and no more at a time"
            self._answer(request, None, why)
            return
        if request.function not in registered.functions:
            self._answer(
                request,
                None,
                f"it has registered no function {request.function}: write @orcalike.register above "
                "it, in a module that each member imports",
            )
            return
        import selectors  # as in `_serve`

        from orcalike.session.forked_process import start_process

        try:
            hosted = start_process(request, self._session, self._taken_ranks())
        except OSError as error:
            self._answer(request, None, f"the process could not be started: {error}")
            return
        assert self._selector is not None
        self._hosted.append(hosted)
        self._session.hosts(len(self._hosted))
        self._selector.register(hosted.pidfd, selectors.EVENT_READ, lambda: self._ended(hosted))
        self._selector.register(hosted.report, selectors.EVENT_READ, lambda: self._read(hosted))

    def _taken_ranks(self) -> set[int | None]:
        """Ranks that a new process need not ask for."""
        view = self._session.view
        taken = {member.rank for member in view.replicas} if view is not None else set()
        return taken | {each.rank for each in self._hosted}

    def _read(self, hosted: Hosted) -> None:
        """What the child says of itself."""
        try:
            data = os.read(hosted.report, REPORT_MAX)
        except BlockingIOError:
            return
        hosted.said += data[: REPORT_MAX - len(hosted.said)]
        if data and b"\n" not in data:
            return
        self._close_report(hosted)
        if hosted.answered:
            return
        match _parse(hosted.said):
            case {"joined": [*packed]} if member := _member(packed):
                hosted.answered = hosted.is_in = True
                hosted.rank = member.rank
                self._answer(hosted.request, member, "")
            case {"failed": str(why)}:
                hosted.answered = True
                self._answer(hosted.request, None, f"{hosted.describe()} failed: {why}")

    def _close_report(self, hosted: Hosted) -> None:
        if hosted.report >= 0:
            assert self._selector is not None
            self._selector.unregister(hosted.report)
            os.close(hosted.report)
            hosted.report = -1

    def _ended(self, hosted: Hosted) -> None:
        if hosted.report >= 0:
            self._read(hosted)  # what it has said last
            self._close_report(hosted)
        assert self._selector is not None
        self._selector.unregister(hosted.pidfd)
        os.close(hosted.pidfd)
        code = hosted.process.wait()
        self._hosted.remove(hosted)
        self._session.hosts(len(self._hosted))
        how = _describe_end(code)
        if not hosted.answered:
            why = f"{hosted.describe()} ended {how} before it had joined"
            self._answer(hosted.request, None, why)
        elif code != 0 and hosted.is_in and self._kill_at is None:
            _log.error("%s failed: it ended %s", hosted.describe(), how)


def _parse(said: bytes) -> object:
    try:
        import json  # not at the top: few programs fork

        return json.loads(said)
    except (ValueError, RecursionError):
        return None


def _member(packed: list[Any]) -> Member | None:
    try:
        return Member.unpack(packed)
    except (OrcalikeError, ValueError):
        return None


def _describe_end(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"by {signal.Signals(-code).name}"
    return f"by signal {-code}"
