"""What happens to objects otherwise than by their operations: withdrawal, end, change of view.

These are tasks in the objects' lock queues, so they have the same place among the operations at each
replica. Where an object waits for its class to be declared they travel with its queue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from orcalike.runtime.call import Call, remove_waiting, waiting_calls
from orcalike.runtime.invariants import check_invariants
from orcalike.runtime.invocation import Invocation, withdrawal_error
from orcalike.runtime.replica import DROPPED, Replica, dropped
from orcalike.runtime.task import OVER, Task
from orcalike.transport.view import Member
from orcalike.transport.wording import repr_of

if TYPE_CHECKING:
    from orcalike.runtime.calling import Calling
    from orcalike.runtime.shadow import Shadow

_log = logging.getLogger("orcalike")


if TYPE_CHECKING:

    class Burying(Protocol):
        """The object table, as far as changes take it."""

        def bury(self, replica: Replica) -> None:
            """An object was ended."""

    class Changing(Calling[Call], Protocol):
        """The runtime, as far as changes of its objects take it."""

        @property
        def table(self) -> Burying:
            """Which objects leave."""

        @property
        def shadow(self) -> Shadow | None:
            """It runs hooks twice, too."""


class Hook:
    """A function that runs as an operation of an object, at a place in the order."""

    undo = False
    guard = None

    def __init__(self, function: Callable[..., object], title: str) -> None:
        self.function = function
        self.title = title


class Change(Task):
    """A task that can travel: `pack` gives what `unpack` makes it from."""

    kind: ClassVar[str]

    def __init__(self, runtime: Changing) -> None:
        self.runtime = runtime

    def pack(self) -> tuple[object, ...]:
        """As values that the codec can carry; its kind comes first."""
        return (self.kind,)

    @classmethod
    def unpack(cls, runtime: Changing, *fields: Any) -> Self:
        """From what `pack` made, without the kind."""
        return cls(runtime, *fields)


class Withdrawal(Change):
    """A call that waits for its guard shall not run any more; one that has run, has run.

    It looks at calls of its own objects only: at any other one its place in the order says nothing.
    """

    kind = "withdrawal"

    def __init__(self, runtime: Changing, source: int, ticket: int) -> None:
        super().__init__(runtime)
        self.source, self.ticket = source, ticket

    def run(self) -> int:
        call = self.runtime.waiting.get((self.source, self.ticket))
        if call is not None and not set(self.replicas).isdisjoint(call.replicas):
            take_out(call, None)
        return OVER

    def pack(self) -> tuple[object, ...]:
        return (self.kind, self.source, self.ticket)


class Drop(Change):
    """An object comes to its end: calls that wait there never run."""

    kind = "drop"
    invocation: Invocation[None] | None = None

    def run(self) -> int:
        (replica,) = self.replicas
        error = dropped(replica)
        if replica.has(DROPPED):
            if self.invocation is not None:
                self.invocation.set_error(error)
            return OVER
        self.end(replica)
        return OVER

    def end(self, replica: Replica) -> None:
        """It is the end of this object here."""
        error = dropped(replica)
        replica.mark(DROPPED)
        waiting = waiting_calls(replica)
        remove_waiting(replica, set(waiting))
        for call in waiting:
            take_out(call, error)
        replica.fail_reads(error)
        self.runtime.table.bury(replica)
        if self.invocation is not None:
            self.invocation.set_result(None)

    def fail(self, error: BaseException) -> int:
        return _lose(self, error)


class ViewChange(Change):
    """Of objects that are bound together: withdrawals, then the hooks."""

    kind = "view"

    def __init__(self, runtime: Changing, left: list[Member], joined: list[Member]) -> None:
        super().__init__(runtime)
        self.left, self.joined = left, joined

    def run(self) -> int:
        gone = {member.incarnation for member in self.left}
        waiting = {call: None for replica in self.replicas for call in waiting_calls(replica)}
        leaving = [call for call in waiting if call.source in gone]
        for replica in self.replicas if leaving else ():
            remove_waiting(replica, set(leaving))
        for call in leaving:
            take_out(call, None)
        for hook, members in (("member_left", self.left), ("member_joined", self.joined)):
            for member in members:
                for replica in self.replicas:
                    if replica.info is not None and hook in replica.info.hooks:
                        self._run_hook(replica, hook, member)
        return OVER

    def _run_hook(self, replica: Replica, hook: str, member: Member) -> None:
        info = replica.info
        assert info is not None
        title = f"{info.cls.__name__}.{hook}"

        def run() -> None:
            try:
                shared = replica.object
                if shared is None:
                    return  # the group was left meanwhile
                if self.runtime.shadow is None:
                    getattr(shared, hook)(member)
                else:
                    self.runtime.shadow.run_hook(replica, hook, title, member)
                check_invariants(shared, info, replica.name, title)
            except Exception as error:
                _log.warning("%s of %r raised %s", hook, replica.name, repr_of(error))
                raise

        call = Call(self.runtime, Hook(run, title), 0, None).of(None, 0, None)
        call.at(self.seqno, self.index, self.stamp).run_held([replica])

    def pack(self) -> tuple[object, ...]:
        return (
            self.kind,
            *([member.pack() for member in members] for members in (self.left, self.joined)),
        )

    @classmethod
    def unpack(cls, runtime: Changing, *fields: Any) -> Self:
        left, joined = ([Member.unpack(list(member)) for member in members] for members in fields)
        return cls(runtime, left, joined)


class Fence(Task):
    """Done when all that was ordered before it has run."""

    def __init__(self, invocation: Invocation[None]) -> None:
        self.invocation: Invocation[None] | None = invocation
        self.changes_nothing = True

    def run(self) -> int:
        if self.invocation is not None:
            self.invocation.set_result(None)
        return OVER

    def fail(self, error: BaseException) -> int:
        return _lose(self, error)


_KINDS: dict[str, type[Change]] = {change.kind: change for change in (Withdrawal, Drop, ViewChange)}


def unpack_change(runtime: Changing, kind: str, *fields: Any) -> Change:
    """The change that `Change.pack` gave."""
    return _KINDS[kind].unpack(runtime, *fields)


def _lose(change: Drop | Fence, error: BaseException) -> int:
    """Its outcome will not come here."""
    if change.invocation is not None:
        change.invocation.set_error(error)
        change.invocation = None
    return 0


def take_out(call: Call, error: Exception | None) -> None:
    """A call that waits for its guard never runs."""
    call.end_waiting()
    if call.invocation is not None:
        call.fail(error or withdrawal_error(call.invocation))
