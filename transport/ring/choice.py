"""Which order a view has: in shared memory, or through a sequencer. The cut before the view says it, with what that order made.

It comes from others, and is believed only if it has the right form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import msgpack
from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.errors import ProtocolError
from orcalike.transport.record import Record
from orcalike.transport.ring.fence import ROWS
from orcalike.transport.view import View
from orcalike.transport.wire.control import unpack

Pair = tuple[int, int]
"""Two incarnations, the younger first: one cannot map the other's memory; or the same twice, of one that can make none."""

LASTS = 0
"""In the place of a view's number: two are apart as long as both are there."""

Apart = Mapping[Pair, int]
"""Two that are apart, and the number of the view in which that was found; LASTS if it is not to be tried again."""


class Choice(Record):
    """What an order of the view before has made of the reports, and which order follows."""

    in_memory: bool
    """Whether the order of the next view is in shared memory."""
    apart: Apart
    """Its members that share no memory with each other, as was found."""
    cut: bytes

    def pack(self) -> bytes:
        """As it travels."""
        apart = [[*pair, since] for pair, since in sorted(self.apart.items())[:MEMBERS_MAX]]
        packed = msgpack.packb([self.in_memory, apart, self.cut])
        assert isinstance(packed, bytes)
        return packed

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Raises ProtocolError for what is none."""
        match unpack(data, "the choice of an order", depth=3):
            case [bool(in_memory), [*apart], bytes(cut)] if len(apart) <= MEMBERS_MAX:
                return cls(in_memory, dict(map(found_of, apart)), cut)
        raise ProtocolError("a cut that ORDER did not make")


def in_view(apart: Apart, view: View) -> dict[Pair, int]:
    """Those of which both are in a view."""
    present = {member.incarnation for member in view.members}
    return {pair: since for pair, since in apart.items() if present.issuperset(pair)}


def still_apart(apart: Apart, view: View, is_due: bool = False) -> dict[Pair, int]:
    """Those that are not tried again in a view.

    What a member lacked, it may have by then. The second view after the first of them was found is a try for all, and so is the
    4th, the 8th, the 16th: each that is in vain costs the group a change of view. `is_due`: so is this view, since something
    else kept the sequencer in such a one.
    """
    passing = [since for since in apart.values() if since != LASTS]
    if not passing or not (is_due or _is_try(view.number - min(passing))):
        return dict(apart)
    return {pair: since for pair, since in apart.items() if since == LASTS}


def _is_try(passed: int) -> bool:
    return passed > 1 and passed.bit_count() == 1


def can_share(view: View, apart: Apart, is_near: Callable[[str], bool]) -> bool:
    """Whether the members of a view are on this host, share memory as far as is known, and all find room in it."""
    fits = len(view.members) <= ROWS and not in_view(apart, view)
    return fits and all(is_near(member.address) for member in view.members)


def pair_of(entry: Any) -> Pair:
    """Two incarnations; raises ProtocolError for anything else."""
    match entry:
        case [int(younger), int(older)]:
            return younger, older
    raise ProtocolError("not two members")


def found_of(entry: Any) -> tuple[Pair, int]:
    """Two that are apart, and since when; raises ProtocolError for anything else."""
    match entry:
        case [*pair, int(since)] if since >= 0:
            return pair_of(pair), since
    raise ProtocolError("not two members that are apart")
