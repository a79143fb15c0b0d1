"""The control messages of MBRSHIP: each a value, written and read in this one place.

On the wire a message is a list in msgpack: its kind, then its fields (`ControlMessage.pack`). What
arrives is read by `unpack`: a message of that kind with fields of these types, or ProtocolError.
Which endpoints are believed what is another table (`attribution`).

A ballot is a number (`view.POSITION_BITS`), a position one in the view that sender and receiver are in.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

from orcalike.transport.application_state import State
from orcalike.transport.degree import ALL, AVAILABLE
from orcalike.transport.errors import ProtocolError
from orcalike.transport.record import Record
from orcalike.transport.view import Member, View

Identity = tuple[int, int, int]
"""Of a view: lineage, number, ballot."""

DEGREE_MAX = ALL | AVAILABLE
OPTIONS_MAX = 16
OPTION_MAX = 256
"""Characters of an option's name, or of its value if that is text."""


class Value(NamedTuple):
    """What is agreed on: the next view, and the packets before it."""

    view: View
    cut: bytes


class ControlMessage(Record):
    """What one endpoint's MBRSHIP says to another's."""

    kind: ClassVar[str]
    """Its name on the wire."""
    types: ClassVar[tuple[type, ...]] = ()
    """Of the fields on the wire, if they are those of the value."""

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        return list(self.values())

    def pack(self) -> list[Any]:
        """As a list that msgpack can carry."""
        return [self.kind, *self.fields()]

    @classmethod
    def read(cls, fields: list[Any]) -> Self | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        if len(fields) == len(cls.types) and all(map(isinstance, fields, cls.types)):
            return cls(*fields)
        return None


# Joining and leaving.


class Join(ControlMessage):
    """A process asks to be let in, or a member passes that on to the coordinator."""

    kind = "JOIN"
    member: Member
    options: dict[str, Any]
    """Those of the group's options that it asks for."""
    round: int = 0
    """Of a bootstrap (`bootstrap`): it would make the group, if the receiver is in none; 0: it would not."""

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        asked = [self.member.pack(), self.options]
        return [*asked, self.round] if self.round else asked

    @classmethod
    def read(cls, fields: list[Any]) -> Join | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        match fields:
            case [[*member], dict(options)]:
                return cls(Member.unpack(member), options_of(options))
            case [[*member], dict(options), int(round_)] if round_ > 0:
                return cls(Member.unpack(member), options_of(options), round_)
        return None


class Denied(ControlMessage):
    """A joiner is not let in; with the joiner if it is another one than the receiver."""

    kind = "DENIED"
    why: str
    joiner: Member | None = None

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        return [self.why] if self.joiner is None else [self.why, self.joiner.pack()]

    @classmethod
    def read(cls, fields: list[Any]) -> Denied | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        match fields:
            case [str(why)]:
                return cls(why)
            case [str(why), [*joiner]]:
                return cls(why, Member.unpack(joiner))
        return None


class Nowhere(ControlMessage):
    """The answer to JOIN of a process that is in no view; in a round, its promise to the rank 0 that asks."""

    kind = "NOWHERE"
    round: int
    """Of the JOIN that this answers; 0 for one that is of no round, and gets no promise."""
    size: int
    """How many processes the sender's job has."""
    member: Member
    """The sender, which is to be let in when the group is made."""
    options: dict[str, Any]
    """Those of the group's options that it asks for."""

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        return [self.round, self.size, self.member.pack(), self.options]

    @classmethod
    def read(cls, fields: list[Any]) -> Nowhere | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        match fields:
            case [int(round_), int(size), [*member], dict(options)]:
                return cls(round_, size, Member.unpack(member), options_of(options))
        return None


class Taken(ControlMessage):
    """The answer to the JOIN of a round: the sender is in no view, and another rank 0 has its promise."""

    kind = "TAKEN"
    round: int
    holder: Member
    """That rank 0."""

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        return [self.round, self.holder.pack()]

    @classmethod
    def read(cls, fields: list[Any]) -> Taken | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        match fields:
            case [int(round_), [*holder]]:
                return cls(round_, Member.unpack(holder))
        return None


class Inside(ControlMessage):
    """The answer to the JOIN of a round: the sender is in a view, so the group is made."""

    kind = "INSIDE"
    types = (int,)
    round: int


class Leave(ControlMessage):
    """A member asks the coordinator for a view without it."""

    kind = "LEAVE"


# The agreement on the next view: flush, then view.


class Flush(ControlMessage):
    """Phase 1: a coordinator asks for the promise of its ballot."""

    kind = "FLUSH"
    ballot: int
    mark: bytes
    """The coordinator's own report: what is not in it, members send along with theirs."""
    dead: tuple[int, ...]
    """Incarnations that are certainly dead, as the sender knows."""

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        return [self.ballot, self.mark, list(self.dead)]

    @classmethod
    def read(cls, fields: list[Any]) -> Flush | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        match fields:
            case [int(ballot), bytes(mark), [*dead]]:
                return cls(ballot, mark, _incarnations(dead))
        return None


class Ship(ControlMessage):
    """A packet that the receiver lacks; of the view with that identity, if it is not in the sender's."""

    kind = "SHIP"
    piece: bytes
    view: Identity | None = None

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        return [self.piece] if self.view is None else [list(self.view), self.piece]

    @classmethod
    def read(cls, fields: list[Any]) -> Ship | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        match fields:
            case [bytes(piece)]:
                return cls(piece)
            case [[int(lineage), int(number), int(ballot)], bytes(piece)]:
                return cls(piece, (lineage, number, ballot))
        return None


class FlushOk(ControlMessage):
    """A member has promised a ballot, and reports."""

    kind = "FLUSH_OK"
    ballot: int
    held: bytes
    """What it holds of the view's packets, in the words of the layer above."""
    accepted: tuple[int, Value] | None
    """The last value that it accepted in this view, and under which ballot."""
    dead: tuple[int, ...]
    """Incarnations that are certainly dead, as it knows."""
    state: State
    """What it knows of the application's state."""
    vouched: tuple[int, ...]
    """Those of the dead that decided nothing in this view without its acceptance (`lease`)."""
    degree: int
    """The least degree of 1 or more that it knows of (H2), or 0."""
    chosen: bool = False
    """Whether it knows that enough have accepted that value (CHOSEN)."""

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        accepted = None
        if self.accepted is not None:
            ballot, (view, cut) = self.accepted
            accepted = [ballot, view.pack(), cut]
        said = [list(self.dead), int(self.state), list(self.vouched), self.degree, self.chosen]
        return [self.ballot, self.held, accepted, *said]

    @classmethod
    def read(cls, fields: list[Any]) -> FlushOk | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        match fields:
            case [
                int(ballot),
                bytes(held),
                accepted,
                [*dead],
                0 | 1 | 2 | 3 as state,
                [*vouched],
                int(degree),
                bool(chosen),
            ] if 0 <= degree <= DEGREE_MAX and (accepted or not chosen):
                return cls(
                    ballot,
                    held,
                    _unpack_accepted(accepted),
                    _incarnations(dead),
                    State(state),
                    _incarnations(vouched),
                    degree,
                    chosen,
                )
        return None


class Promised(ControlMessage):
    """A member has promised this ballot, which is higher than the receiver's."""

    kind = "PROMISED"
    types = (int,)
    ballot: int


class Propose(ControlMessage):
    """Phase 2: a coordinator asks for the acceptance of a value."""

    kind = "PROPOSE"
    ballot: int
    value: Value

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        return [self.ballot, self.value.view.pack(), self.value.cut]

    @classmethod
    def read(cls, fields: list[Any]) -> Propose | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        match fields:
            case [int(ballot), [*view], bytes(cut)]:
                return cls(ballot, Value(View.unpack(view), cut))
        return None


class Accept(ControlMessage):
    """A member has accepted what was proposed under this ballot."""

    kind = "ACCEPT"
    types = (int,)
    ballot: int


class Chosen(ControlMessage):
    """Enough have accepted what was proposed under this ballot: only the leases of others are not over yet."""

    kind = "CHOSEN"
    types = (int,)
    ballot: int


class Install(ControlMessage):
    """A view was decided on, and the packets before it."""

    kind = "INSTALL"
    view: View
    cut: bytes

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        return [self.view.pack(), self.cut]

    @classmethod
    def read(cls, fields: list[Any]) -> Install | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        match fields:
            case [[*view], bytes(cut)]:
                return cls(View.unpack(view), cut)
        return None


class Blocked(ControlMessage):
    """The members that reported may not form the next view: which are missing, and by which rule."""

    kind = "BLOCKED"
    missing: tuple[int, ...]
    """Incarnations."""
    rule: str

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        return [list(self.missing), self.rule]

    @classmethod
    def read(cls, fields: list[Any]) -> Blocked | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        match fields:
            case [[*missing], str(rule)]:
                return cls(_incarnations(missing), rule)
        return None


class Lost(ControlMessage):
    """A link to that member broke (0: to none that is known), and only a new view closes the gap."""

    kind = "LOST"
    types = (int,)
    incarnation: int


class Reset(ControlMessage):
    """A program asks that the group goes on with so many members."""

    kind = "RESET"
    types = (int,)
    minimum: int


class ResetFailed(ControlMessage):
    """The coordinator does not reset the group, and why."""

    kind = "RESET_FAILED"
    types = (str,)
    why: str


# Members that hang, links made anew, and endpoints that missed a view.


class Waits(ControlMessage):
    """A member waits for the receiver to lead: is it there?"""

    kind = "WAITS"


class Alive(ControlMessage):
    """The answer to Waits."""

    kind = "ALIVE"


class Slow(ControlMessage):
    """That member was asked whether it is there, and did not answer in time."""

    kind = "SLOW"
    types = (int,)
    incarnation: int


class Here(ControlMessage):
    """The sender waits for the receiver, or can be reached anew: what was said to it may be lost."""

    kind = "HERE"


class HeldUp(ControlMessage):
    """The sender waits for some member, in memory that all share: the receiver is to look for silent ones as well."""

    kind = "HELD_UP"


class Behind(ControlMessage):
    """The view that the sender is in, and what it holds: an endpoint that knows more answers."""

    kind = "BEHIND"
    view: Identity
    held: bytes

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        return [list(self.view), self.held]

    @classmethod
    def read(cls, fields: list[Any]) -> Behind | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        match fields:
            case [[int(lineage), int(number), int(ballot)], bytes(held)]:
                return cls((lineage, number, ballot), held)
        return None


class Expelled(ControlMessage):
    """The group has gone on with that view, without the endpoint of this incarnation; why, for people, if the sender knows."""

    kind = "EXPELLED"
    view: View
    incarnation: int
    why: str

    def fields(self) -> list[Any]:
        """What follows the kind on the wire."""
        return [self.view.pack(), self.incarnation, self.why]

    @classmethod
    def read(cls, fields: list[Any]) -> Expelled | None:
        """From what `fields` made; None if these cannot be fields of this kind."""
        match fields:
            case [[*view], int(incarnation), str(why)]:
                return cls(View.unpack(view), incarnation, why)
        return None


class Gone(ControlMessage):
    """The sender is out of the group for good, and answers no more."""

    kind = "GONE"


KINDS: dict[str, type[ControlMessage]] = {
    each.kind: each
    for each in (
        *(Join, Denied, Nowhere, Taken, Inside, Leave),
        *(Flush, Ship, FlushOk, Promised, Propose, Accept, Chosen, Install, Blocked, Lost),
        *(Reset, ResetFailed),
        *(Waits, Alive, Slow, HeldUp, Here, Behind, Expelled, Gone),
    )
}
"""All control messages, by their names on the wire."""


def kind_of(fields: object) -> str:
    """The kind of a control message, which can be shown; raises ProtocolError if it is none."""
    match fields:
        case [str(kind), *_] if kind in KINDS:
            return kind
    raise ProtocolError("a control message of no kind")


def unpack(fields: list[Any]) -> ControlMessage:
    """From what `pack` made; raises ProtocolError if it is anything else."""
    kind = kind_of(fields)
    message = KINDS[kind].read(fields[1:])
    if message is None:
        raise ProtocolError(f"{kind} out of place")
    return message


def options_of(options: dict[Any, Any]) -> dict[str, Any]:
    """The options that a JOIN asks for; raises ProtocolError if they can be no options."""
    if len(options) <= OPTIONS_MAX and all(map(_is_option, options, options.values())):
        return options
    raise ProtocolError("a JOIN with options that make no sense")


def _is_option(name: object, value: object) -> bool:
    if not isinstance(name, str) or not name.isprintable() or len(name) > OPTION_MAX:
        return False
    if isinstance(value, str):
        return value.isprintable() and len(value) <= OPTION_MAX
    return value is None or isinstance(value, int | float)


def _incarnations(listed: list[Any]) -> tuple[int, ...]:
    return tuple(each for each in listed if isinstance(each, int))


def _unpack_accepted(data: object) -> tuple[int, Value] | None:
    match data:
        case None:
            return None
        case [int(ballot), [*packed], bytes(cut)]:
            return ballot, Value(View.unpack(packed), cut)
    raise ProtocolError("an accepted value that makes no sense")
