"""An endpoint: one membership of this process, from joining to leaving.

It puts a stack, a pump and what stands above together, and is the only place where they meet
threads and event loops.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from orcalike import control
from orcalike.errors import ConfigMismatch, JoinFailed, NotPrimary, OrcalikeError
from orcalike.plan import DEFAULT_NAME, Plan
from orcalike.runtime import waits
from orcalike.signals import PuttingOff
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers import sockets
from orcalike.transport.drivers.driver import clock
from orcalike.transport.drivers.pump import Pump
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member, View

LEAVE_WITHIN = 5.0
"""Seconds that leaving takes at the most; a group that does not answer is left all the same."""

GIVE_UP_WITHIN = 1.0
"""Seconds that leaving takes at the most where joining has failed."""

_log = logging.getLogger("orcalike")


class Endpoint:
    """One membership. `make_upper(stack, endpoint)` gives what stands on top of the stack."""

    def __init__(self, plan: Plan, make_upper: Callable[[Stack, Endpoint], Any]) -> None:
        self.plan = plan
        self.view: View | None = None
        self.exit_reason: str | None = None
        self.denied: str | None = None
        self.join_trouble: str | None = None
        self.lost_members: dict[Member, str] = {}
        self.ended_ranks: set[int] = set()
        self.on_lost: Callable[[Exception], None] = lambda error: None
        self.tell_ended: Callable[[set[int]], None] = lambda ranks: None
        self.on_view: list[Callable[[View], None]] = []
        self._watchers: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._listener, self.address = self._listen()
        try:
            self.stack = self._make_stack()
        except OrcalikeError:
            self._stop_listening()
            raise
        self.pump = Pump(_log.log)
        self.pump.add(self.stack)
        self.pump.stack_for = lambda group: self.stack if group == plan.name else None
        if self._listener is not None:
            self.pump.listen(self._listener)
        self.pump.on_failure = lambda error: self.on_lost(
            OrcalikeError(f"orcalike itself failed, and this member with it: {error!r}")
        )
        self.upper = make_upper(self.stack, self)
        self._signals = PuttingOff(self.pump.later)

    # How it begins.

    @property
    def _makes_group(self) -> bool:
        launch = self.plan.launch
        makes = launch is not None and launch.makes_group(self.plan.name)
        return makes or self.plan.how in ("alone", "listen")

    def _listen(self) -> tuple[socket.socket | None, str]:
        plan, launch = self.plan, self.plan.launch
        self._incarnation = secrets.randbits(64)
        if plan.how == "alone":
            return None, ""
        if plan.how == "listen":
            return sockets.listen(plan.listen)
        if launch is not None:
            if launch.listen_fd is not None and plan.name == DEFAULT_NAME:
                os.environ.pop("ORCALIKE_LISTEN_FD", None)  # it is there once, and for no child
                os.set_inheritable(launch.listen_fd, False)
                return socket.socket(fileno=launch.listen_fd), launch.listen
            return sockets.listen(launch.listen_at(plan.name))
        return sockets.listen(sockets.beside(self._targets()[0], self._incarnation))

    def _make_stack(self) -> Stack:
        medium = self.address.partition(":")[0] or "unix"
        text = self.plan.stack or f"PACK:XFER:TOTAL:MBRSHIP:COM:{medium}"
        resilience = self.plan.resilience if self._makes_group else self.plan.resilience or None
        options = {"resilience": resilience, "stack": text.rpartition(":")[0]}
        config = StackConfig(self.plan.name, options, time.time_ns() - clock())
        me = Member(self.address, self._incarnation, self.plan.rank)
        return Stack(parse_stack(text), config, me, self._incarnation)

    def _stop_listening(self) -> None:
        if self._listener is None:
            return
        self._listener.close()
        if self.address.startswith("unix:"):
            with contextlib.suppress(OSError):  # the launcher has removed it where the run ends
                os.unlink(self.address.removeprefix("unix:"))

    def _targets(self) -> tuple[str, ...]:
        launch = self.plan.launch
        return launch.seeds_of(self.plan.name) if launch else self.plan.seeds

    # Joining and leaving, on a thread of its own.

    def join(self) -> View:
        """Join with a thread of its own; raises JoinFailed or ConfigMismatch."""
        if self.plan.how != "alone":
            self._thread = threading.Thread(target=self.pump.run, name="orcalike", daemon=True)
            self._thread.start()
        try:
            self._begin()
            self.wait_until(self._step_join, self.plan.timeout, "join the group")
        except BaseException:
            if self._may_be_in():
                self.leave(GIVE_UP_WITHIN)
            else:
                self.close()
            raise
        assert self.view is not None
        return self.view

    async def join_on_loop(self) -> View:
        """Join on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self.pump.rearm = self._rearm
        if self.plan.how != "alone":
            self._loop.add_reader(self.pump.fileno(), self.pump.handle)
        try:
            self._begin()
            await self.await_until(self._step_join, self.plan.timeout, "join the group")
        except BaseException:
            if self._may_be_in():
                await self.leave_on_loop(GIVE_UP_WITHIN)
            else:
                self.close()
            raise
        assert self.view is not None
        return self.view

    def _begin(self) -> None:
        self._tried = 0
        self._signals.install()
        if self.plan.launch is not None:
            control.tell_joining(self.plan.name, self._incarnation)
            if self._makes_group:
                control.listen(self._told_ended)
        self.pump.call(self.stack.join, "" if self._makes_group else self._targets()[0])

    def _step_join(self) -> bool:
        """Whether the view is there and complete; tries the next address after trouble."""
        if self.denied is not None:
            raise (ConfigMismatch if self.denied.startswith("config: ") else JoinFailed)(
                self.denied.removeprefix("config: ")
            )
        if self.join_trouble is not None and self.view is None:
            self.join_trouble = None
            self._tried += 1
            delay = min(0.02 * self._tried, 0.5) if self._tried % len(self._targets()) == 0 else 0.0
            if self._loop is not None:
                self._loop.call_later(delay, self._try_next)
            else:
                time.sleep(delay)
                self._try_next()
        return self.view is not None and self._is_complete(self.view)

    def _may_be_in(self) -> bool:
        """Whether the group has let this member in, or may do so yet: then it must leave again."""
        asked = self.denied is None and self.stack.bottom.is_linked()
        return self.view is not None or asked

    def _told_ended(self, ranks: set[int]) -> None:
        """The launcher says which ranks have ended: this rank tells the group."""
        self.tell_ended(ranks)

    def _try_next(self) -> None:
        """Ask the next address to be let in."""
        targets = self._targets()
        if self.view is None and not self.pump.stopped:
            self.pump.call(self.stack.join, targets[self._tried % len(targets)])

    def _is_complete(self, view: View) -> bool:
        ranks = {member.rank for member in view.replicas}
        launch = self.plan.launch
        if launch is not None and not set(range(launch.size)) <= ranks | self.ended_ranks:
            return False
        return self.plan.size is None or len(ranks) >= self.plan.size

    def leave(self, within: float = LEAVE_WITHIN) -> None:
        """Leave the group and close; never raises, never takes longer than `within` seconds."""
        try:
            if self._can_leave():
                self.pump.call(self.stack.leave)
                self.wait_until(lambda: self.exit_reason is not None, within, "leave")
        except (OrcalikeError, TimeoutError) as error:
            _log.warning("the group was left without its answer: %s", error)
        finally:
            self.close()

    async def leave_on_loop(self, within: float = LEAVE_WITHIN) -> None:
        """Leave the group and close, on the event loop."""
        try:
            if self._can_leave():
                self.pump.call(self.stack.leave)
                await self.await_until(lambda: self.exit_reason is not None, within, "leave")
        except (OrcalikeError, TimeoutError) as error:
            _log.warning("the group was left without its answer: %s", error)
        finally:
            self.close()

    def _can_leave(self) -> bool:
        return self.exit_reason is None and not self.lost_members and self.pump.failure is None

    def close(self) -> None:
        """Close the sockets, after what is still to be sent."""
        self._signals.remove()
        control.forget(self._told_ended)
        if self._loop is not None:
            self._loop.remove_reader(self.pump.fileno())
            if self._timer is not None:
                self._timer.cancel()
        self.pump.stopped = True
        if self._thread is not None:
            self.pump.ring()
            self._thread.join(LEAVE_WITHIN)
        self.pump.rearm = None
        self.pump.drain(clock() + 1_000_000_000)
        self.pump.close_all()
        self._stop_listening()

    def abandon(self) -> None:
        """This is a forked child: its copies of the sockets go, and the group is its parent's."""
        self._signals.remove()
        control.forget(self._told_ended)
        self.pump.close_all()

    def _rearm(self, deadline: int | None) -> None:
        assert self._loop is not None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline is not None:
            delay = max(deadline - clock(), 0) / 1e9
            self._timer = self._loop.call_later(delay, self.pump.handle)

    # A group that is blocked.

    @property
    def blocked(self) -> tuple[tuple[Member, ...], str] | None:
        """Whom the group waits for, and by which rule; None while it may write."""
        if not self.lost_members:
            return None
        return tuple(self.lost_members), "no member of the view may be missing"

    def reset(self, minimum: int, timeout: float | None) -> View:
        """Rebuild a blocked group of `minimum` members or more; raises NotPrimary."""
        if self.blocked is None:
            raise OrcalikeError("the group is not blocked, so there is nothing to reset")
        raise NotPrimary(f"{self._name_lost()} cannot be reached, and this group has no other view")

    def rejoin(self, timeout: float | None) -> None:
        """Join again after Expelled; raises OrcalikeError where this member was not expelled."""
        raise OrcalikeError("this member was not expelled, so it cannot join again")

    def _name_lost(self) -> str:
        return ", ".join(map(str, self.lost_members))

    # Waiting for what happens to the group.

    def wait_until(self, condition: Callable[[], bool], timeout: float | None, what: str) -> None:
        """Wait in this thread; raises JoinFailed when the time is over."""
        changed = threading.Event()
        self._watchers.append(changed.set)
        end = None if timeout is None else time.monotonic() + timeout
        waits.enter("view", "", what)
        try:
            while not condition():
                rest = None if end is None else end - time.monotonic()
                if (rest is not None and rest <= 0) or not changed.wait(rest):
                    raise self._too_late(timeout, what)
                changed.clear()
        finally:
            waits.leave()
            self._watchers.remove(changed.set)

    async def await_until(
        self, condition: Callable[[], bool], timeout: float | None, what: str
    ) -> None:
        """Wait in a coroutine; raises JoinFailed when the time is over."""
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
            raise self._too_late(timeout, what) from None
        finally:
            self._watchers.remove(notify)

    def _too_late(self, timeout: float | None, what: str) -> JoinFailed:
        missing = ""
        if self.view is not None:
            missing = f"; in it are {', '.join(map(str, self.view.replicas))}"
        elif self._targets():
            missing = f"; no answer from {', '.join(self._targets())}"
        return JoinFailed(f"could not {what} within {timeout} s{missing}")

    def _notify(self) -> None:
        for watcher in list(self._watchers):
            watcher()

    # Events, told by what stands on top of the stack; on the thread that drives it.

    def viewed(self, view: View) -> None:
        """A view was installed."""
        self.view = view
        if self.plan.launch is not None:
            orders = view.place(self._incarnation) == 0
            (control.tell_sequencer if orders else control.tell_unblocked)(self.plan.name)
        for listener in list(self.on_view):
            listener(view)
        self._notify()

    def lost(self, member: Member, why: str) -> None:
        """A member cannot be reached: without it the view may not go on writing."""
        self.lost_members[member] = why
        _log.warning("lost %s: %s", member, why)
        if self.plan.launch is None or self.plan.blocked == "raise":
            self.on_lost(
                NotPrimary(
                    f"{member} is lost ({why}), and the group cannot go on without it: "
                    "join again to begin a new one"
                )
            )
        self._notify()

    def exited(self, why: str) -> None:
        """Out of the group."""
        self.exit_reason = why
        self._notify()

    def join_failed(self, why: str) -> None:
        """The address that was tried does not answer."""
        self.join_trouble = why
        self._notify()

    def join_denied(self, why: str) -> None:
        """The group refused."""
        self.denied = why
        self._notify()

    def system_error(self, why: str) -> None:
        """Something that cannot be believed has come, or orcalike failed."""
        _log.error("%s", why)

    def ended(self, ranks: set[int]) -> None:
        """These ranks of the program have ended."""
        self.ended_ranks = set(ranks)
        self._notify()

    def failed(self, error: Exception) -> None:
        """This replica stopped serving."""
        self.on_lost(error)

    def still_waiting(self, what: str) -> None:
        """A call has been waiting for another 10 s: say so where the group is the reason."""
        if self.lost_members:
            who = ", ".join(f"{member} ({why})" for member, why in self.lost_members.items())
            _log.warning("%s waits: the view is not primary without %s", what, who)
