"""Entering a group: a session asks one address after the other until it is in; and again if it was expelled.

Joining has one time limit, in which a process also finds out where it listens (`locating`), and has its turn at a
meeting place: `deadline` is that of all of it.
"""

from __future__ import annotations

from orcalike.errors import JoinFailed, OrcalikeError
from orcalike.session.deadline import Deadline
from orcalike.session.launcher_link import report_joining
from orcalike.session.session import GIVE_UP_WITHIN, LEAVE_WITHIN, Session
from orcalike.transport.drivers.deferral import held
from orcalike.transport.view import View


class Entering:
    """How one session gets into its group: by a thread, by an event loop, or again."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._endpoint = session.endpoint
        self._entry = session.entry
        self._pump = session.pump
        self._waiting = session.waiting
        self._deadline = Deadline(None)

    @held
    def join(self, deadline: Deadline) -> View:
        """Join with a thread of its own; raises JoinFailed or ConfigMismatch."""
        session, self._deadline = self._session, deadline
        if session.options.how != "alone":
            session.runner.start_thread()
        try:
            self._begin()
            if not self._waiting.wait(self._step_join, deadline.rest(), "join the group"):
                raise self._too_late(session.options.timeout)
            self._pump.call(self._arrive)
        except BaseException:
            if self._may_be_in():
                session.leave(GIVE_UP_WITHIN)
            else:
                session.close()
            raise
        assert session.view is not None
        return session.view

    async def join_on_loop(self, deadline: Deadline) -> View:
        """Join on the running event loop."""
        import asyncio  # not at the top: only coroutines need it, and it takes long

        session, rest = self._session, deadline.rest()
        session.runner.serve_on(asyncio.get_running_loop())
        try:
            self._begin()
            if not await self._waiting.wait_on_loop(self._step_join, rest, "join the group"):
                raise self._too_late(session.options.timeout)
            self._pump.call(self._arrive)
        except BaseException:
            if self._may_be_in():
                await session.leave_on_loop(GIVE_UP_WITHIN)
            else:
                session.close()
            raise
        assert session.view is not None
        return session.view

    @held
    def rejoin(self, timeout: float | None) -> None:
        """Join again after Expelled or ReplicaDivergence; raises OrcalikeError if neither was."""
        session, self._deadline = self._session, Deadline(timeout)
        if session.expelled is None and session.diverged is not None and session.is_in:
            leaving = Deadline(self._deadline.within(LEAVE_WITHIN))
            asked = self._pump.call_within(leaving.within(LEAVE_WITHIN), session.stack.leave)
            if not (asked and self._waiting.wait(session.is_out, leaving.rest(), "leave")):
                raise JoinFailed("the group did not let this member go, which it must leave first")
            session.expelled = session.diverged
        if session.expelled is None:
            raise OrcalikeError("this member was not expelled, and serves: so it cannot join again")
        if not session.targets():
            raise JoinFailed("this member knows no address at which it could join again")
        expelled = session.expelled
        self._entry.begin()
        self._pump.call(session.begin_again)
        self._look_up()
        try:
            rest = self._deadline.rest()
            if not self._waiting.wait(self._step_rejoin, rest, "join the group again"):
                raise self._too_late(timeout)
            self._pump.call(self._arrive)
        except BaseException:
            self._entry.under_way = False
            self._pump.call(session.stack.leave)  # if it is let in after all
            if not session.is_in:  # perhaps it was, for a moment
                session.expelled = expelled
            raise

    def _begin(self) -> None:
        session = self._session
        self._entry.begin()
        if session.line is not None:
            session.line.listen()  # the launcher asks how a group stands as soon as it knows of it
        report_joining(session.line, self._pump, self._endpoint.incarnation)
        if self._endpoint.makes_group:
            self._pump.call(session.stack.join, "")
        else:
            self._look_up()

    def _step_join(self) -> bool:
        """Whether the view is there and complete; asks the next address after trouble."""
        self._step()
        return self._session.is_in and self._session.why_incomplete() is None

    def _step_rejoin(self) -> bool:
        self._step()
        return self._session.is_in

    def _step(self) -> None:
        self._ask_at(self._entry.looked_up())
        if (attempt := self._entry.next_attempt(is_in=self._session.is_in)) is None:
            return
        delay, anew = attempt
        if (loop := self._session.runner.loop_here()) is not None:
            loop.call_later(delay, self._ask, anew)
        else:
            self._waiting.pause(self._deadline.within(delay))
            self._ask(anew)

    def _ask(self, anew: bool) -> None:
        """Ask the next address to be let in; `anew` as another incarnation."""
        if self._session.is_in or self._pump.stopped:
            return
        if anew:
            self._pump.call(self._session.begin_again)
        self._look_up()

    def _look_up(self) -> None:
        """Ask the next address, or all, as soon as it is known as a number."""
        self._ask_at(self._entry.look_up(self._waiting.notify, self._endpoint.may_make_group))

    def _ask_at(self, addresses: tuple[str, ...] | None) -> None:
        if addresses is not None and not self._session.is_in and not self._pump.stopped:
            self._pump.call(self._endpoint.ask, self._session.stack, addresses)

    def _arrive(self, now: int) -> None:
        """It has joined: from here on an expulsion is for the program to know; raises JoinFailed if it cannot stay."""
        self._entry.check_refusal()
        self._entry.under_way = False
        self._endpoint.arrived(self._session.me)
        if self._entry.turned_out is not None:  # in the same moment
            self._session.exited(self._entry.turned_out)

    def _may_be_in(self) -> bool:
        """Whether the group has let this member in, or may do so yet: then it must leave again."""
        asked = self._entry.denied is None and self._session.stack.bottom.is_linked()
        return self._session.view is not None or asked

    def _too_late(self, timeout: float | None) -> JoinFailed:
        session = self._session
        view = session.view if session.is_in else None
        late = session.why_incomplete()
        return self._entry.too_late(timeout, view, *session.way_in(), late=late)
