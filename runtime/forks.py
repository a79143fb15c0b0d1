"""Processes that members start for each other (`group.fork`): requests, and what came of them.

Request and answer are operations of the group, with a place in the order, so both survive a change
of sequencer. Of the members only the two that are concerned do anything; the state holds nothing of it.
The one that is asked starts a process with a function that its program has registered, and no other;
the arguments stay encoded until that process has joined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from orcalike.runtime.codes import Code
from orcalike.runtime.errors import ForkFailed
from orcalike.runtime.invocation import Invocation, withdrawal_error
from orcalike.runtime.invocation_coroutine import InvocationCoroutine
from orcalike.runtime.sender import Sender
from orcalike.runtime.with_room import await_with_room
from orcalike.transport.errors import ProtocolError
from orcalike.transport.view import Member, View


class Request(NamedTuple):
    """One request, to the member that is asked."""

    source: int
    """The incarnation of the member that asks, ..."""
    ticket: int
    """... and its number for it."""
    function: str
    """`module:name`."""
    arguments: bytes
    """Encoded."""


if TYPE_CHECKING:

    class Starting(Protocol):
        """What starts processes here. No method may block."""

        def start(self, request: Request) -> None:
            """Start one; `Forks.answer` follows."""

        def withdraw(self, source: int, ticket: int) -> None:
            """The member that asked wants none any more: end it, if it has not joined yet."""

        def describe(self) -> list[tuple[int | None, int, str]]:
            """Rank, number and function of each process that runs."""

    class Forking(Protocol):
        """The runtime, as far as forks take it."""

        @property
        def sender(self) -> Sender:
            """For requests and answers."""

        @property
        def incarnation(self) -> int:
            """Of this member."""

        @property
        def view(self) -> View:
            """The one in which messages are delivered."""


class Forks:
    """The requests of one group, as this member takes part in them."""

    def __init__(self, runtime: Forking) -> None:
        self._runtime = runtime
        self.starter: Starting | None = None
        """None in a member that starts no processes, as in the simulator."""
        self._own: dict[int, tuple[Invocation[Any], Member]] = {}
        """This member's own requests that are not answered, by ticket, and the member that is asked."""

    def invoke(self, on: Member, function: str, args: tuple[object, ...]) -> Invocation[Member]:
        """Ask a member to start a process; the outcome is the new member."""
        what = f"fork of {function}"
        sender = self._runtime.sender
        arguments = sender.codec.encode(args, what)
        invocation: Invocation[Member] = sender.invoke_group(
            Code.FORK, (on.incarnation, function, arguments), what
        )
        return invocation

    def await_with_room(
        self, start: Callable[[], Invocation[Member]]
    ) -> InvocationCoroutine[Member]:
        """What to await for the outcome of a request that `start` sends: now, or when there is room for it."""
        return await_with_room(self._runtime.sender, "fork", start)

    def answer(self, request: Request, member: Member | None, why: str) -> None:
        """Report what became of a request: the new member, or why there is none; on any thread."""
        what = (request.source, request.ticket, member, why)
        self._runtime.sender.invoke_group(Code.FORKED, what, "the outcome of a fork", degree=0)

    # Operations of the group.

    def fork(
        self,
        member: Member,
        ticket: int,
        invocation: Invocation[Any] | None,
        target: int,
        function: str,
        arguments: bytes,
    ) -> None:
        """A member is asked to start a process."""
        view = self._runtime.view
        position = view.position(target)
        if invocation is not None:
            if position < 0:
                raise ForkFailed("the member that was to start the process has left the group")
            self._own[ticket] = invocation, view.members[position]
            self._runtime.sender.hurry_others()
        if target == self._runtime.incarnation and view.position(member.incarnation) >= 0:
            if self.starter is None:
                raise ProtocolError("this member starts no processes")
            self.starter.start(Request(member.incarnation, ticket, function, arguments))

    def forked(
        self,
        member: Member,
        ticket: int,
        invocation: Invocation[Any] | None,
        source: int,
        request: int,
        joined: Member | None,
        why: str,
    ) -> None:
        """What became of a request."""
        if invocation is not None:
            invocation.set_result(None)
        if source != self._runtime.incarnation or request not in self._own:
            return
        waiting, asked = self._own[request]
        if asked.incarnation != member.incarnation:
            raise ProtocolError(f"{member} answered what {asked} was asked")
        del self._own[request]
        if isinstance(joined, Member):
            waiting.set_result(joined)
        elif waiting.withdrawn:
            waiting.set_error(withdrawal_error(waiting))
        else:
            waiting.set_error(ForkFailed(f"{asked} started no member: {why:.2000}"))

    # What happens besides.

    def withdraw(self, source: int, ticket: int) -> None:
        """A member takes a call back, which may be a request."""
        if source == self._runtime.incarnation and ticket in self._own:
            self._runtime.sender.hurry_others()
        if self.starter is not None:
            self.starter.withdraw(source, ticket)

    def view_changed(self, view: View) -> None:
        """Members may have left that were asked."""
        for ticket, (invocation, asked) in list(self._own.items()):
            if view.position(asked.incarnation) < 0:
                del self._own[ticket]
                invocation.set_error(
                    ForkFailed(f"{asked} has left the group before it started a member")
                )

    def fail_all(self, error: Exception) -> None:
        """No request will be answered any more."""
        own, self._own = self._own, {}
        for invocation, _ in own.values():
            invocation.set_error(error)

    def why(self, invocation: Invocation[Any]) -> str | None:
        """What a request of this member waits for; None for any other call."""
        own = self._own.get(invocation.ticket)
        if own is None or own[0] is not invocation:
            return None
        return f"the process that {own[1]} was asked for has not joined yet"
