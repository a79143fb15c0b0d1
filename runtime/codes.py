"""Numbers of what a group itself is asked to do, which a witness knows too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from orcalike.transport.errors import ProtocolError
from orcalike.transport.view import is_rank


class Code(IntEnum):
    """The group's own operations, as they travel."""

    CREATE = 1
    FIND = 2
    DROP = 3
    WITHDRAW = 4
    FENCE = 5
    BARRIER = 6
    ATOMIC = 7
    ENDED = 8
    VOID = 9
    """In the place of an invocation that was taken back before it left."""
    IDLE = 11
    """All threads of a member wait for guards: for which."""
    AVAILABLE = 10
    """From here on a degree counts as far as the group has members for it."""
    FORK = 13
    """A member shall start a process that runs a registered function."""
    FORKED = 14
    """What became of it."""
    DIGESTS = 12
    """What a member has seen of objects' states at places of the order. It does not count as delivered."""


DIGESTS_OF_STATES = "digests of states"
"""What `Code.DIGESTS` is called in histories and errors."""

FIELDS: dict[Code, tuple[type, ...]] = {
    Code.CREATE: (str, str, bytes, bytes, int, int),
    Code.FIND: (str, str, bytes),
    Code.DROP: (int,),
    Code.WITHDRAW: (int,),
    Code.FENCE: (),
    Code.BARRIER: (),
    Code.ATOMIC: (str, bytes, int),
    Code.AVAILABLE: (),
    Code.FORK: (int, str, bytes),
    Code.FORKED: (int, int, object, str),
    Code.DIGESTS: (int, int, int, bytes),
    Code.ENDED: (),
    Code.IDLE: (),
}
"""What each takes; any object where it is to look itself."""

_FIELDS_OF = {int(code): fields for code, fields in FIELDS.items()}
"""The same by number, which is what comes."""

ATOMIC_HEAD = len(FIELDS[Code.ATOMIC])
"""What comes before the arguments of an atomic function: its name, its digest, and their number."""

MORE = {Code.ATOMIC, Code.ENDED, Code.IDLE}
"""Those that take more, as they look at themselves."""


def check_fields(code: int, values: Sequence[object]) -> None:
    """Raise ProtocolError if no member can have sent these with this operation."""
    fields = _FIELDS_OF[code]
    if len(values) == len(fields) or (len(values) > len(fields) and code in MORE):
        for value, field in zip(values, fields, strict=False):
            if field is not object and type(value) is not field:
                break
        else:
            return
    raise ProtocolError(f"{Code(code).name.lower()} of the group, with what it does not take")


def ended_ranks(values: Iterable[object]) -> set[int]:
    """The ranks that `Code.ENDED` names. Raises ProtocolError for what no program can have.

    So what is remembered of them is bounded, whatever a member sends.
    """
    ranks: set[int] = set()
    for value in values:
        if not (isinstance(value, int) and is_rank(value)):
            raise ProtocolError(f"{value!r:.100} is no rank")
        ranks.add(value)
    return ranks
