"""The state of a group, as one member knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from orcalike.transport.degree import Resilience
from orcalike.transport.layers.total import Total
from orcalike.transport.record import Frozen
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member, View, resets_of

if TYPE_CHECKING:
    from orcalike.transport.layers.ring import SharedOrder


class Blocked(NamedTuple):
    """Why a group may not go on writing, or not with the degrees that are asked for."""

    missing: tuple[Member, ...]
    """The members that it waits for."""
    rule: str
    """What it needs them for."""


class GroupInfo(Frozen, kw_only=True):
    """The state of a group, as one member knows it."""

    name: str
    address: str
    """What others name to join through this member; "" for a group of one without a socket."""
    me: Member
    view: View
    """The view that is installed here; `view.others` are the witnesses. `view.primary` is False
    while the group is blocked, and after this member was expelled."""
    resilience: Resilience
    """The degree of what has no degree of its own."""
    blocked: Blocked | None
    """The members that the group waits for, and why; None while it may write, and has members enough for every
    degree in use. If only those lack, `view.primary` is True: what has no degree goes on."""
    next_seqno: int
    """The place in the order of the packet that is delivered here next."""

    def __init__(
        self,
        *,
        name: str,
        address: str,
        me: Member,
        view: View,
        resilience: Resilience,
        blocked: Blocked | None,
        next_seqno: int,
    ) -> None:
        super().__init__(name, address, me, view, resilience, blocked, next_seqno)

    @property
    def rank(self) -> int | None:
        """This member's lasting number in its program."""
        return self.me.rank

    @property
    def members(self) -> tuple[Member, ...]:
        """The members with a rank, by rank."""
        return self.view.replicas

    @property
    def size(self) -> int:
        """How many members have a rank."""
        return len(self.members)

    @property
    def sequencer(self) -> Member:
        """The oldest member, which orders; if the order is in shared memory no member does."""
        return self.view.sequencer

    @property
    def lineage(self) -> int:
        """How often the group was begun: 1, and 1 more for each `reset`, which may lose data."""
        return resets_of(self.view.lineage) + 1


def next_seqno_of(stack: Stack) -> int:
    """The seqno that is delivered next; inside the stack's driver."""
    order = order_of(stack)
    return 0 if order is None else order.next


def shares_memory(stack: Stack) -> bool:
    """Whether the order is in shared memory, so that no member is the sequencer."""
    return stack.focus("RING") is not None


def lacks_members(stack: Stack) -> bool:
    """Whether what was cast here waits until the view has more members (H2); inside the stack's driver."""
    order = order_of(stack)
    return order is not None and order.lacks_members()


def order_of(stack: Stack) -> Total | SharedOrder | None:
    """The layer that orders; None if the stack has none."""
    order = stack.focus("TOTAL")
    if isinstance(order, Total):
        return order
    if (order := stack.focus("RING")) is None:
        return None
    from orcalike.transport.layers.ring import SharedOrder  # not at the top: others do without

    return order if isinstance(order, SharedOrder) else None
