"""The lines between the launcher and a process of its run, written and read here.

The launcher gives each rank and the witness one socket, on which lines come and go.

| to the process | |
| --- | --- |
| `ended RANK` | `Ended`: this rank has ended, and is not started again |
| `make GROUP INCARNATION` | `Make`: the ranks that would have made this group have ended, and have not: this member makes it |
| `died INCARNATION` | `Died`: the process of this member, on the receiver's own host, was seen to end (H13) |
| `gone INCARNATION` | `Gone`: the process of this member, on another host, is gone as far as is known |
| `cut RANK,RANK,w` | `Cut`: nothing may come from these ranks and the witness, nor go there |
| `heal` | `Heal`: the end of that |
| `describe NUMBER`, `describe NUMBER objects` | `Describe`: report each group as it stands, with this number; with its objects |

| to the launcher | |
| --- | --- |
| `joining GROUP INCARNATION` | `Joining`: this process asks to be let into a group, or makes it |
| `leaving GROUP` | `Leaving`: it leaves this group, and is out of it soon, whatever becomes of the group |
| `left GROUP` | `Left`: it is in this group no more, and joins it no more either |
| `unblocked GROUP` | `Unblocked`: it has installed a primary view |
| `sequencer GROUP` | `Sequencer`: it has installed one in which it orders |
| `shared-order GROUP` | `SharedOrder`: it has installed one whose order is in shared memory |
| `blocked GROUP INCARNATION:RANK,INCARNATION:w RULE` | `Blocked`: it can install none without these members |
| `lacks GROUP NUMBER RULE` | `Lacks`: it waits until so many members with replicas are in its view |
| `hosts GROUP NUMBER` | `Hosts`: it runs so many processes that are members of the group, or are to be |
| `described NUMBER GROUP JSON` | `Described`: how a group stands here (`descriptions`) |

| to the launcher, by what a rank has started, on the rank's socket | |
| --- | --- |
| `member INCARNATION` | `IsMember`: the process that sends this asks to be let into a group |

A group's name is percent-encoded. What cannot be parsed is none of these lines, and is let pass.
"""

from __future__ import annotations

from typing import TypeAlias

from orcalike.launch_protocol import descriptions
from orcalike.launch_protocol.descriptions import Description
from orcalike.launch_protocol.quoting import quoted, unquoted
from orcalike.transport.record import Record

LINE_MAX = 1 << 15
"""A longer line is cut, so that the kernel takes it in one piece."""

INCARNATIONS = 1 << 64
"""How many there can be."""

DIGITS_MAX = len(str(INCARNATIONS))
"""Of any number in a line."""

Role: TypeAlias = int | None
"""A process of the run: a rank, or None for the witness."""


class Ended(Record):
    """This rank has ended, and is not started again."""

    rank: int


class Make(Record):
    """No process has made this group, and the ranks that come first have ended: this member makes it (ADR-23)."""

    group: str
    incarnation: int


class Died(Record):
    """The process of this member, on the receiver's own host, was seen to end."""

    incarnation: int


class Gone(Record):
    """The process of this member, on another host, has ended, or its host is lost: never certain there."""

    incarnation: int


class Cut(Record):
    """Nothing may come from these processes, nor go there; it replaces the one before."""

    others: frozenset[Role]


class Heal(Record):
    """The process is cut off from none any more."""


class Describe(Record):
    """The process shall report each of its groups, with this number."""

    number: int
    objects: bool = False
    """Whether their objects are asked for, too."""


class Joining(Record):
    """This process asks to be let into the group as this member, or makes the group."""

    group: str
    incarnation: int


class Leaving(Record):
    """This process leaves the group, and is out of it soon, whatever becomes of the group."""

    group: str


class Left(Record):
    """This process has left the group, or does not join it any more."""

    group: str


class IsMember(Record):
    """The process that sends this, which a rank has started, asks to be let into a group as this member."""

    incarnation: int


class Unblocked(Record):
    """This process has installed a primary view of the group."""

    group: str


class Sequencer(Record):
    """This process has installed a primary view of the group in which it orders."""

    group: str


class SharedOrder(Record):
    """This process has installed a primary view of the group, whose order is in shared memory."""

    group: str


class Blocked(Record):
    """No primary view can be formed without these members, by this rule."""

    group: str
    missing: tuple[tuple[int, Role], ...]
    """Incarnation and role of each."""
    rule: str


class Lacks(Record):
    """This process waits until so many members with replicas are in its view, by this rule."""

    group: str
    needed: int
    rule: str


class Hosts(Record):
    """This process has started so many that run, and are members of the group, or are to be."""

    group: str
    number: int


class Described(Record):
    """How a group stands at this process."""

    number: int
    """Of the `Describe` that this answers."""
    group: str
    description: Description


ToProcess: TypeAlias = Ended | Make | Died | Gone | Cut | Heal | Describe
ToLauncher: TypeAlias = (
    Joining
    | Leaving
    | Left
    | Unblocked
    | Sequencer
    | SharedOrder
    | Blocked
    | Lacks
    | Hosts
    | Described
)


def encode(report: ToProcess | ToLauncher | IsMember) -> str:
    """The line, without its end."""
    match report:
        case Ended(rank):
            return f"ended {rank}"
        case Make(group, incarnation):
            return f"make {quoted(group)} {incarnation}"
        case Died(incarnation):
            return f"died {incarnation}"
        case Gone(incarnation):
            return f"gone {incarnation}"
        case Cut(others):
            return f"cut {','.join(map(_role, sorted(others, key=_by_rank)))}"
        case Heal():
            return "heal"
        case Describe(number, objects):
            return f"describe {number}{' objects' if objects else ''}"
        case Joining(group, incarnation):
            return f"joining {quoted(group)} {incarnation}"
        case Leaving(group):
            return f"leaving {quoted(group)}"
        case Left(group):
            return f"left {quoted(group)}"
        case IsMember(incarnation):
            return f"member {incarnation}"
        case Unblocked(group):
            return f"unblocked {quoted(group)}"
        case Sequencer(group):
            return f"sequencer {quoted(group)}"
        case SharedOrder(group):
            return f"shared-order {quoted(group)}"
        case Blocked(group, missing, rule):
            members = ",".join(f"{incarnation}:{_role(role)}" for incarnation, role in missing)
            return f"blocked {quoted(group)} {members or '-'} {_one_line(rule)}"
        case Lacks(group, needed, rule):
            return f"lacks {quoted(group)} {needed} {_one_line(rule)}"
        case Hosts(group, number):
            return f"hosts {quoted(group)} {number}"
        case Described(number, group, description):
            return f"described {number} {quoted(group)} {descriptions.encode(description)}"


def parse_for_process(line: str) -> ToProcess | None:
    """What the launcher reports to a process; None for any other line."""
    match line.split():
        case ["ended", rank] if _is_number(rank):
            return Ended(int(rank))
        case ["make", group, incarnation] if _is_number(incarnation):
            return Make(unquoted(group), int(incarnation))
        case ["died", incarnation] if _is_number(incarnation):
            return Died(int(incarnation))
        case ["gone", incarnation] if _is_number(incarnation):
            return Gone(int(incarnation))
        case ["cut", others] if all(map(_is_role, others.split(","))):
            return Cut(frozenset(map(_parse_role, others.split(","))))
        case ["heal"]:
            return Heal()
        case ["describe", number] if _is_number(number):
            return Describe(int(number))
        case ["describe", number, "objects"] if _is_number(number):
            return Describe(int(number), objects=True)
        case _:
            return None


def parse_for_launcher(line: str) -> ToLauncher | None:
    """What a process reports to the launcher; None for any other line."""
    match line.split(maxsplit=3):
        case ["joining", group, incarnation] if _is_number(incarnation):
            return Joining(unquoted(group), int(incarnation))
        case ["leaving", group]:
            return Leaving(unquoted(group))
        case ["left", group]:
            return Left(unquoted(group))
        case ["unblocked", group]:
            return Unblocked(unquoted(group))
        case ["sequencer", group]:
            return Sequencer(unquoted(group))
        case ["shared-order", group]:
            return SharedOrder(unquoted(group))
        case ["blocked", group, members, *rule]:
            missing = _parse_members(members)
            return None if missing is None else Blocked(unquoted(group), missing, "".join(rule))
        case ["lacks", group, needed, *rule] if _is_number(needed):
            return Lacks(unquoted(group), int(needed), "".join(rule))
        case ["hosts", group, number] if _is_number(number):
            return Hosts(unquoted(group), int(number))
        case ["described", number, group, text] if _is_number(number):
            description = descriptions.parse(text)
            return Described(int(number), unquoted(group), description) if description else None
        case _:
            return None


def parse_of_started(line: str) -> IsMember | None:
    """What a process reports that a rank has started; None for any other line."""
    match line.split():
        case ["member", incarnation] if _is_incarnation(incarnation):
            return IsMember(int(incarnation))
        case _:
            return None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX


def _is_incarnation(text: str) -> bool:
    return _is_number(text) and int(text) < INCARNATIONS


def _one_line(rule: str) -> str:
    return " ".join(rule.split())


def _by_rank(role: Role) -> tuple[bool, int]:
    return role is None, role or 0


def _role(role: Role) -> str:
    return "w" if role is None else str(role)


def _is_role(text: str) -> bool:
    return text == "w" or _is_number(text)


def _parse_role(text: str) -> Role:
    return None if text == "w" else int(text)


def _parse_members(text: str) -> tuple[tuple[int, Role], ...] | None:
    """`12:0,34:w` as ((12, 0), (34, None)); None for what is not like that."""
    members: list[tuple[int, Role]] = []
    for member in () if text == "-" else text.split(","):
        incarnation, _, role = member.partition(":")
        if not (_is_number(incarnation) and _is_role(role)):
            return None
        members.append((int(incarnation), _parse_role(role)))
    return tuple(members)
