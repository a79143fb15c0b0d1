"""The states of a participant and of a coordinator, and the changes between them: tables.

Each change of state goes through its table; one that is not in it is an error of this program's own
logic. What is remembered besides, such as the value that was accepted, are the role's fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

from orcalike.transport.membership.effects import Changed, Effect


class ParticipantState(Enum):
    """What a member does in the view that it is in."""

    OUTSIDE = "in no view"
    NORMAL = "in a view, and no ballot is promised"
    FROZEN = "a ballot is promised, and what is held reported"
    INCOMPLETE = "a value is proposed, and packets of its cut are missing here"
    ACCEPTED = "the proposed value is accepted"


class ParticipantCause(Enum):
    """What changes the state of a participant."""

    INSTALLED = "a view is installed"
    PROMISED = "another ballot is promised"
    PROPOSED = "a value is proposed under that ballot"
    CUT_HELD = "the whole cut is here"
    EXITED = "this member is out of the group"


class CoordinatorState(Enum):
    """What the member that leads a ballot waits for."""

    IDLE = "it leads none"
    COLLECTING = "it has asked for promises and reports"
    SHORT_OF_REPORTS = "blocked: those that have reported may not form a view"
    PROPOSING = "it has proposed a value"
    SHORT_OF_ACCEPTANCES = "blocked: those that have accepted may not form a view"
    DECIDED = "the view is decided on"


class CoordinatorCause(Enum):
    """What changes the state of a coordinator."""

    BEGUN = "a change of view is due, or a reset"
    REFUSED = "too few have reported, or accepted"
    GRANTED = "enough have reported"
    AGREED = "enough have accepted, and leases are over"
    GIVEN_UP = "a higher ballot is known, or a reset"
    INSTALLED = "a view is installed"
    EXITED = "this member is out of the group"


class BootstrapState(Enum):
    """What a process does of whose job no process is known to be in a view (`bootstrap`)."""

    FREE = "in no view, and no rank 0 has its promise"
    PROMISED = "in no view, and a rank 0 has its promise"
    ASKING = "it is rank 0, and a round is under way"
    INSIDE = "it is in a view, or was"


class BootstrapCause(Enum):
    """What changes that."""

    ASKED = "a rank 0 asks for its promise"
    RELEASED = "the rank 0 that has its promise is gone, silent for too long, or gives it back"
    BEGUN = "it is to make the group"
    OVER = "the round is over, and a rank has not answered"
    YIELDED = "another rank 0 comes first"
    FOUND = "a member of a view has answered"
    UNANIMOUS = "all other ranks have answered that they are in no view"
    INSTALLED = "a view is installed"


_P, _PC = ParticipantState, ParticipantCause
_C, _CC = CoordinatorState, CoordinatorCause

PARTICIPANT: Mapping[ParticipantState, Mapping[ParticipantCause, ParticipantState]] = {
    _P.OUTSIDE: {_PC.INSTALLED: _P.NORMAL, _PC.EXITED: _P.OUTSIDE},
    _P.NORMAL: {
        _PC.PROMISED: _P.FROZEN,
        _PC.INSTALLED: _P.NORMAL,
        _PC.EXITED: _P.OUTSIDE,
    },
    _P.FROZEN: {
        _PC.PROMISED: _P.FROZEN,
        _PC.PROPOSED: _P.INCOMPLETE,
        _PC.INSTALLED: _P.NORMAL,
        _PC.EXITED: _P.OUTSIDE,
    },
    _P.INCOMPLETE: {
        _PC.PROMISED: _P.FROZEN,
        _PC.PROPOSED: _P.INCOMPLETE,
        _PC.CUT_HELD: _P.ACCEPTED,
        _PC.INSTALLED: _P.NORMAL,
        _PC.EXITED: _P.OUTSIDE,
    },
    _P.ACCEPTED: {
        _PC.PROMISED: _P.FROZEN,
        _PC.PROPOSED: _P.INCOMPLETE,
        _PC.INSTALLED: _P.NORMAL,
        _PC.EXITED: _P.OUTSIDE,
    },
}
"""By state and cause: the next state of a participant."""

COORDINATOR: Mapping[CoordinatorState, Mapping[CoordinatorCause, CoordinatorState]] = {
    _C.IDLE: {
        _CC.BEGUN: _C.COLLECTING,
        _CC.INSTALLED: _C.IDLE,
        _CC.EXITED: _C.IDLE,
    },
    _C.COLLECTING: {
        _CC.GRANTED: _C.PROPOSING,
        _CC.REFUSED: _C.SHORT_OF_REPORTS,
        _CC.GIVEN_UP: _C.IDLE,
        _CC.INSTALLED: _C.IDLE,
        _CC.EXITED: _C.IDLE,
    },
    _C.SHORT_OF_REPORTS: {
        _CC.GRANTED: _C.PROPOSING,
        _CC.REFUSED: _C.SHORT_OF_REPORTS,
        _CC.GIVEN_UP: _C.IDLE,
        _CC.INSTALLED: _C.IDLE,
        _CC.EXITED: _C.IDLE,
    },
    _C.PROPOSING: {
        _CC.AGREED: _C.DECIDED,
        _CC.REFUSED: _C.SHORT_OF_ACCEPTANCES,
        _CC.GIVEN_UP: _C.IDLE,
        _CC.INSTALLED: _C.IDLE,
        _CC.EXITED: _C.IDLE,
    },
    _C.SHORT_OF_ACCEPTANCES: {
        _CC.AGREED: _C.DECIDED,
        _CC.REFUSED: _C.SHORT_OF_ACCEPTANCES,
        _CC.GIVEN_UP: _C.IDLE,
        _CC.INSTALLED: _C.IDLE,
        _CC.EXITED: _C.IDLE,
    },
    _C.DECIDED: {_CC.INSTALLED: _C.IDLE, _CC.EXITED: _C.IDLE},
}
"""By state and cause: the next state of a coordinator."""

_B, _BC = BootstrapState, BootstrapCause

BOOTSTRAP: Mapping[BootstrapState, Mapping[BootstrapCause, BootstrapState]] = {
    _B.FREE: {
        _BC.ASKED: _B.PROMISED,
        _BC.BEGUN: _B.ASKING,
        _BC.INSTALLED: _B.INSIDE,
    },
    _B.PROMISED: {
        _BC.RELEASED: _B.FREE,
        _BC.INSTALLED: _B.INSIDE,
    },
    _B.ASKING: {
        _BC.BEGUN: _B.ASKING,
        _BC.OVER: _B.FREE,
        _BC.YIELDED: _B.PROMISED,
        _BC.FOUND: _B.FREE,
        _BC.UNANIMOUS: _B.INSIDE,
        _BC.INSTALLED: _B.INSIDE,
    },
    _B.INSIDE: {_BC.INSTALLED: _B.INSIDE},
}
"""By state and cause: the next state of a process whose job makes its group by a unanimous bootstrap."""

S = TypeVar("S", bound=Enum)
C = TypeVar("C", bound=Enum)


class Machine(Generic[S, C]):
    """A role's state, which changes by its table alone."""

    def __init__(
        self, role: str, start: S, table: Mapping[S, Mapping[C, S]], out: list[Effect]
    ) -> None:
        self.role = role
        self.state = start
        self._table = table
        self._out = out

    def change(self, cause: C) -> None:
        """To the next state; raises RuntimeError if the table has none."""
        before = self.state
        after = self._table[before].get(cause)
        if after is None:
            raise RuntimeError(f"{self.role} {before.name}: there is no {cause.name}")
        self.state = after
        if after is not before:
            self._out.append(Changed(self.role, before.name, cause.name, after.name))


def diagram(table: Mapping[S, Mapping[C, S]]) -> str:
    """A table as a state diagram, in Mermaid; the first state is where it begins."""
    lines = ["stateDiagram-v2", f"    [*] --> {next(iter(table)).name}"]
    for before, changes in table.items():
        lines += [
            f"    {before.name} --> {after.name}: {cause.name}" for cause, after in changes.items()
        ]
    return "\n".join(lines)


def legend(kind: str, members: type[Enum]) -> str:
    """What the names of states or causes mean, as a table in Markdown."""
    rows = [f"| {each.name} | {each.value} |" for each in members]
    return "\n".join([f"| {kind} | meaning |", "| --- | --- |", *rows])
