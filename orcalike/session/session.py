"""A session: one membership of this process, and what its stack reports of it.

It puts a stack, a pump and what stands above together, and leaves the group; how it joins is in
`entering.py`, how it is reset in `resetting.py`. A member that the group has gone on without can
join again: as another incarnation, on another stack; what stands above stays.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from orcalike.errors import DataLossPossible, Expelled, NotPrimary, OrcalikeError
from orcalike.session.deadline import Deadline
from orcalike.session.deferred_signals import handlers
from orcalike.session.describing import describe
from orcalike.session.endpoint import OUT_WITHIN, Endpoint
from orcalike.session.entry import Entry
from orcalike.session.group_info import lacks_members, shares_memory
from orcalike.session.launcher_link import LauncherLink, report_joining
from orcalike.session.options import JoinOptions
from orcalike.session.pump_runner import PumpRunner
from orcalike.session.shortage import Shortage
from orcalike.session.waiting import Waiting
from orcalike.transport.degree import resilience_of
from orcalike.transport.drivers.deferral import held
from orcalike.transport.drivers.pump import Pump
from orcalike.transport.layers.base import Layer
from orcalike.transport.record import replaced
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member, View
from orcalike.transport.wording import listed, repr_of

if TYPE_CHECKING:
    from orcalike.session.upper import Upper

LEAVE_WITHIN = 5.0
"""Seconds in which the group has to answer one that leaves; else it is left all the same."""

GIVE_UP_WITHIN = 1.0
"""The same if joining has failed, or the program did."""

CLOSE_WITHIN = 0.5
"""Seconds in which the sockets of a group are closed that was left without its answer."""

_log = logging.getLogger("orcalike")


class Session:
    """One membership. `make_upper(stack, session)` gives what stands on top of the stack.

    That is a layer of the class `upper`, whose `needs` the stack is checked for.
    """

    def __init__(
        self,
        options: JoinOptions,
        make_upper: Callable[[Stack, Session], Upper],
        upper: type[Layer],
    ) -> None:
        self.options = options
        self.endpoint = Endpoint(options, upper)
        self.view: View | None = None
        self.me: Member | None = None
        self.exit_reason: str | None = None
        self.expelled: str | None = None
        """Why this member is out of the group, which has gone on; None while it is in."""
        self.diverged: str | None = None
        """Why this replica serves no more, until it joins again; None while it serves."""
        self.ended_ranks: set[int] = set()
        self.cast_ended: Callable[[set[int]], None] = lambda ranks: None
        self.on_view: list[Callable[[View | None], None]] = []
        """Called with each view; with None when the group is left."""
        self.on_blocked: Callable[[], None] | None = None
        """Called when the group is blocked, if anything reacts to it."""
        self.bar: Callable[[Exception], None] | None = None
        """Until there is a view again every call raises this; for `blocked="raise"`."""
        self.tells_loss = True
        """Whether a reset may have lost what this program knows of."""
        self.is_in = False
        """A view is installed, and this member is not on its way back in."""
        self._is_anew = False
        """This incarnation follows one that was expelled, and has had no view yet."""
        self.entry = Entry(self.targets, lambda: self.address, options)
        self.shortage = Shortage(options.name, lambda: self.upper.too_few())
        self.reset_refused: str | None = None
        """Why a reset that was asked for cannot be done; None if nothing was said."""
        self.waiting = Waiting(lambda *given: self.pump.attend(*given), self._say_waiting)
        self._defers = True
        handlers.defer()
        with contextlib.ExitStack() as undo:
            undo.callback(self._defer_no_more)
            undo.callback(self.endpoint.close)
            self.endpoint.open()
            self.stack = self.endpoint.make_stack()
            self.pump = self._make_pump()
            undo.callback(self.endpoint.close_pump, self.pump, self.stack, 0.0)
            self.runner = PumpRunner(self.pump)
            self.line = self._make_line()
            self.upper = make_upper(self.stack, self)
            undo.pop_all()

    @property
    def address(self) -> str:
        """Where others join through this member; "" for a group of one without a socket."""
        return self.endpoint.address

    # What it is made of.

    def _make_pump(self) -> Pump:
        pump = Pump(_log.log)
        pump.add(self.stack)
        pump.keys = self.options.keys
        pump.stack_for = lambda group, _: self.stack if group == self.stack.config.group else None
        pump.on_failure = lambda error: self.failed(
            OrcalikeError(f"orcalike itself failed, and this member with it: {repr_of(error)}")
        )
        self.endpoint.listen_with(pump)
        return pump

    def _make_line(self) -> LauncherLink | None:
        if (launch := self.options.launch) is None:
            return None
        return LauncherLink(
            self.options.name,
            self.pump,
            launch.addresses,
            lambda ranks: self.cast_ended(ranks),
            self.waiting.notify,
            lambda question: describe(self, question),
            lambda now: self.stack.join("", now),
            shares_memory=lambda: shares_memory(self.stack),
        )

    def targets(self) -> tuple[str, ...]:
        """The addresses at which it may join."""
        return self.endpoint.targets(self.view)

    def way_in(self) -> tuple[tuple[Member, ...], list[str]]:
        """The members one of which is to give it the state, and the addresses of those that have greeted."""
        return self.stack.awaited_donors(), self.stack.bottom.non_members()

    def _say_waiting(self, what: str) -> None:
        """Joining, leaving, or a reset has taken long: say what it waits for."""
        why = self.why_stuck() or self.why_incomplete()
        if why is None and not self.is_in:
            why = self.entry.why_out(*self.way_in())
        _log.warning("%s waits: %s", what, why or "the others did not answer yet")

    def why_incomplete(self) -> str | None:
        """Which members have to come yet before joining is over; None if all are in, or this one is not."""
        if not self.is_in or self.view is None:
            return None
        there = {member.rank for member in self.view.replicas} | self.all_ended()
        if late := self.options.missing(there):
            return f"{'rank' if len(late) == 1 else 'ranks'} {listed(late)} did not join yet"
        if self.options.size is not None and len(self.view.replicas) < self.options.size:
            return f"{len(self.view.replicas)} of {self.options.size} members are in"
        return None

    def all_ended(self) -> set[int]:
        """The ranks that have ended, by the group's word or the launcher's."""
        return self.ended_ranks | (self.line.ended if self.line is not None else set())

    # Leaving.

    def report_leaving(self) -> None:
        """Have the launcher know that this member is out of the group soon, whatever its calls wait for."""
        if self.line is not None:
            self.line.leaving()

    @held
    def leave(self, within: float = LEAVE_WITHIN) -> None:
        """Leave the group and close; never raises, never takes longer than `within` and `CLOSE_WITHIN` seconds."""
        deadline = Deadline(within)
        try:
            if self._asks_to_leave(within) and not self.waiting.wait(
                self.is_out, deadline.within(within), "leave"
            ):
                self._say_left(f"no member answered within {within:g} s")
        except OrcalikeError as error:
            self._say_left(error)
        finally:
            self.close(max(deadline.within(within), CLOSE_WITHIN))

    async def leave_on_loop(self, within: float = LEAVE_WITHIN) -> None:
        """Leave the group and close, on the event loop; in the same time."""
        deadline = Deadline(within)
        try:
            if self._asks_to_leave(within) and not await self.waiting.wait_on_loop(
                self.is_out, deadline.within(within), "leave"
            ):
                self._say_left(f"no member answered within {within:g} s")
        except OrcalikeError as error:
            self._say_left(error)
        finally:
            self.close(max(deadline.within(within), CLOSE_WITHIN))

    def _asks_to_leave(self, within: float) -> bool:
        """Ask to be let go; whether an answer is to be waited for."""
        self.report_leaving()
        if not self._can_leave():
            return False
        asked = self.pump.call_within(within, self.stack.leave)
        if not asked:
            self._say_left(f"an operation has not ended within {within:g} s")
        return asked

    def _can_leave(self) -> bool:
        """Whether there are members that could let this one go."""
        if self.exit_reason is not None or self.pump.failure is not None:
            return False
        if self.blocked is not None:
            self._say_left("it is blocked")
        return self.blocked is None

    def is_out(self) -> bool:
        """Whether it is out of the group, and knows why."""
        return self.exit_reason is not None

    def _say_left(self, why: object) -> None:
        level = self._level if self.view is not None else logging.INFO
        _log.log(level, "the group was left without its answer: %s", why)

    @property
    def _level(self) -> int:
        """How much a group that cannot go on matters."""
        return logging.WARNING if self.on_blocked is None else logging.INFO

    @held
    def close(self, within: float = LEAVE_WITHIN) -> None:
        """Close the sockets, after what is still to be sent; never takes longer than `within` seconds."""
        deadline = Deadline(within)
        if self.line is not None:
            self.line.leave()
        self.runner.stop(within)
        self.endpoint.close_pump(self.pump, self.stack, deadline.within(OUT_WITHIN))
        self.endpoint.close()
        self._defer_no_more()

    def _defer_no_more(self) -> None:
        if self._defers:
            self._defers = False
            handlers.restore()

    def abandon(self) -> None:
        """This is a forked child: its copies of the sockets go, and the group is its parent's."""
        if self._defers:
            self._defers = False
            handlers.restore_in_child()
        if self.line is not None:
            self.line.forget()
        self.pump.close_all()

    # A group that is blocked.

    @property
    def blocked(self) -> tuple[tuple[Member, ...], str] | None:
        """The members that the group waits for, and by which rule; None while it may write."""
        return self.shortage.blocked

    def show(self, view: View) -> View:
        """A view as the program sees it: it is primary while this member may write in it."""
        may_write = self.blocked is None and self.exit_reason is None and not self.pump.stopped
        return view if may_write else replaced(view, primary=False)

    def lacks_members_for_own(self) -> bool:
        """Whether what was invoked here waits until the view has more members (H2)."""
        found: list[bool] = []
        self.pump.call(lambda now: found.append(lacks_members(self.stack)))
        return any(found)

    @property
    def waits_for(self) -> tuple[tuple[Member, ...], str] | None:
        """The same, and also if the view has too few members for a degree that is in use."""
        return self.blocked or self.shortage.waits_for

    def begin_again(self, now: int) -> None:
        """Be another incarnation, with the rank and objects that the program knows, in no view yet."""
        old = self.stack
        self.endpoint.renew()
        self.is_in = False
        self._is_anew = True
        self.entry.denied = self.entry.trouble = None
        if self.expelled is None:
            self.exit_reason = None  # the program does not know of the one that is out
        self.stack = self.endpoint.make_stack(old.config.options)
        self.upper.rebind(self.stack)
        self.pump.replace(old, self.stack)
        report_joining(self.line, self.pump, self.endpoint.incarnation)

    # Events, reported by what stands on top of the stack; on the thread that drives it.

    def viewed(self, view: View) -> None:
        """A view was installed."""
        before, self.view = self.view, view
        has_lost = self.shortage.note_view(before, view)
        self.me = view.members[view.position(self.endpoint.incarnation)]
        again, self._is_anew = self._is_anew, False
        self.expelled = None
        if again:
            self.diverged = None
        self.exit_reason = None
        self.is_in = True
        # The leader sends it to joiners: now this member has it, whatever it asked for itself.
        settings = self.stack.config.options
        settings["resilience"] = resilience_of(self.upper.group_degree)
        settings["degree"] = "available" if self.upper.available else "required"
        was_blocked, self.shortage.blocked = self.blocked is not None, None
        if was_blocked:
            _log.log(self._level, "the group %r goes on: %s", self.options.name, view)
        if before is not None and not again and view.lineage > before.lineage:
            self._tell_loss(view)
        if self.line is not None:
            self.line.viewed(view, self.endpoint.incarnation)
        for listener in list(self.on_view):
            listener(view)
        self.shortage.look_for_too_few()
        if has_lost:
            self.shortage.warn_of_too_few()
        self.waiting.notify()

    def _tell_loss(self, view: View) -> None:
        """The group was reset, and this member was in it before (I9)."""
        if not self.tells_loss:
            return
        text = (
            f"the group {self.options.name!r} was reset, and goes on with "
            f"{listed(view.members)}: what only others held is lost"
        )
        _log.critical("%s", text)
        self.upper.notice = DataLossPossible(text)

    def suspected(self, member: Member, why: str) -> None:
        """A member is taken for dead; the group acts on it."""
        self.shortage.suspect(member)
        _log.info("%s is suspected: %s", member, why)

    def blocked_by(self, missing: tuple[Member, ...], rule: str) -> None:
        """No primary view can be formed without these members, by this rule."""
        if self.blocked == (missing, rule):
            return  # reported again, by a link that was made anew
        self.shortage.blocked = missing, rule
        text = f"the group {self.options.name!r} is blocked: {self.shortage.describe_blocked()}"
        _log.log(self._level, "%s", text)
        if self.on_blocked is not None:
            self.on_blocked()
        if self.line is not None:
            self.line.blocked(missing, rule)
        if self.options.blocked == "raise" and self.bar is not None:
            self.bar(NotPrimary(f"{text}; what was under way may be ordered yet"))
        self.waiting.notify()

    def reset_failed(self, why: str) -> None:
        """A reset cannot be done."""
        self.reset_refused = why
        self.waiting.notify()

    def exited(self, why: str) -> None:
        """Out of the group."""
        self.exit_reason = why
        self.shortage.blocked = None
        if why.startswith("expelled") and self.entry.under_way:
            _log.info("this member was %s; it asks again to be let in", why)
            self.entry.turned_out = why
            self.is_in = False
            self.upper.fail_all(Expelled(why))
        elif why.startswith("expelled"):
            self._turn_out(f"this member was {why}; group.rejoin() makes it a member again")
        self.waiting.notify()

    def _turn_out(self, text: str) -> None:
        """It is no member any more, and has not asked for that: its calls fail."""
        self.expelled = text
        _log.warning("%s", text)
        self.upper.fail_all(Expelled(text))

    def join_failed(self, why: str) -> None:
        """This process was not let in through the address that was tried, or it is not reached."""
        self.entry.trouble = why
        self.waiting.notify()

    def join_denied(self, why: str) -> None:
        """The group refused; for what a joiner can take from it: another incarnation asks, which has that."""
        if self.endpoint.adopts(why):
            self.entry.turned_out = why
        else:
            self.entry.denied = why
            if not self.entry.under_way:  # it had joined, and leaves again
                self._turn_out(f"this member has left: {why}")
        self.waiting.notify()

    def system_error(self, why: str) -> None:
        """Something that cannot be believed has come, or orcalike failed."""
        _log.error("%s", why)

    def ended(self, ranks: set[int]) -> None:
        """These ranks of the program have ended."""
        self.ended_ranks = set(ranks)
        self.waiting.notify()

    def failed(self, error: Exception) -> None:
        """This replica stopped serving."""
        self.diverged = str(error)
        self.upper.fail_all(error)
        self.waiting.notify()

    def why_stuck(self) -> str | None:
        """Why the group cannot go on; None if it can."""
        if self.blocked is None:
            return None
        return f"the group is blocked: {self.shortage.describe_blocked()}"

    def hosts(self, number: int) -> None:
        """This member runs so many processes that are members, or are to be."""
        if self.line is not None:
            self.line.hosts(number)

    def lacks_members(self, needed: int) -> None:
        """A call waits until there are so many members with replicas; 0: none does any more."""
        if needed:
            self.shortage.warn_of_too_few()
        if self.line is not None and self.blocked is None:
            # The launcher knows whether any more can come.
            self.line.lacks(needed, self.upper.say_too_few(needed - 1) if needed else "")
