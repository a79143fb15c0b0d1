"""States are compared: digests of objects at places of the order (promise 13; I18, I24).

All members look at the same objects at the same places, which follow from the order alone: a packet
whose stamp is a period after that of the last look is such a place. What was written since it was
looked at is in a queue, each object once, in the order of those writes; a look takes from its front,
and one more object in turn. So each write is looked at after so many places at the most as the queue
was long. A place has a bound of values, which its objects share (`state_digest`), and the period grows
with what looks take, so all of them cost less than a part in two hundred.

Each member reports its digests to the others in the order, once in a second in which there were any,
and sooner while objects wait for their look (`Code.DIGESTS`). So all of them come to the same
conclusion at the same place: the members with the digest that the largest number has go on, of digests
with equal numbers those with the one of the oldest member, and the others serve no more. A report
is a place to look at as well, so what was written last is looked at and reported, and then all is
quiet.

A member that compares nothing, or has failed, says so when others report, and is left out of the
conclusion; so is one that compares otherwise. What is known of that begins anew with each view.

With `check="hash"` a look follows each write, and goes through all of the object.
"""

from __future__ import annotations

import logging
import struct
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from orcalike.runtime.audit import values_of
from orcalike.runtime.call import Call
from orcalike.runtime.changes import Hook
from orcalike.runtime.codes import DIGESTS_OF_STATES, Code
from orcalike.runtime.divergence import diverged
from orcalike.runtime.errors import ReplicaDivergence
from orcalike.runtime.replica import (
    DROPPED,
    RAN_ATOMIC,
    RAN_ENDED,
    RAN_MADE,
    RAN_OTHER,
    RAN_VIEW,
    UNDECLARED,
    Replica,
)
from orcalike.runtime.sender import Sender
from orcalike.runtime.state import plain_state
from orcalike.runtime.state_digest import Look
from orcalike.runtime.task import OVER, Task
from orcalike.transport.errors import OrcalikeError, ProtocolError
from orcalike.transport.view import Member, View
from orcalike.transport.wording import listed, repr_of

if TYPE_CHECKING:
    from orcalike.runtime.calling import Calling

PERIOD = 50_000_000
"""ns by the order's clock between two places where states are looked at."""
VALUE_NS = 1_500
"""ns that one value of a look takes, at the most."""
LOOK_VALUES = 16
"""Values that take as long as a look does besides those of the object."""
PART = 200
"""The period is as many times as long as a look takes."""
VALUES_MAX = 2048
"""Values that a look goes through: the same for each, so equal states have equal digests."""
LOOKS = 3
"""Objects that were written and are looked at in one place."""
LOOKS_MAX = 32
"""The same where many wait, at every other place: they share the values of the few."""
VALUES_AT_PLACE = 2 * (LOOKS + 1) * VALUES_MAX
"""What one place costs at the most, in values."""
REPORT = 1_000_000_000
"""ns after a look until it is reported."""
REPORT_SOON = 100_000_000
"""The same, at the least, while objects wait for their look, and where each write is looked at."""
KEPT = 4096
"""Looks of this member that are kept until they are reported."""
PLACES = 4 * KEPT
"""Places that are kept until all members have reported their looks."""
RECORDS_MAX = 1024
"""Looks in one report."""

RECORD = struct.Struct("<QII8s")
"""A look as it is reported: seqno, index, number of the object, digest."""
NONE = bytes(8)
"""The digest of a member that cannot look at the object: its class is not declared there, say."""

APART, SOME, ALL = 0, 1, 2
"""How a member compares: not at all, now and then, after each write."""

NEVER = (1 << 64) - 1
"""The stamp of a look where states are compared no more."""

_log = logging.getLogger("orcalike")

Place = tuple[int, int, int]
"""seqno, index, and the number of the object."""


if TYPE_CHECKING:

    class Naming(Protocol):
        """The object table, as far as digests take it."""

        names: dict[str, int]

    class Comparing(Calling[Call], Protocol):
        """The runtime, as far as digests of its objects' states take it."""

        look_at: int

        @property
        def sender(self) -> Sender:
            """For reports."""

        @property
        def table(self) -> Naming:
            """With the names."""

        @property
        def view(self) -> View:
            """The one in which messages are delivered."""

        @property
        def dirty(self) -> OrderedDict[Replica, None]:
            """The objects that were written since they were looked at, in order."""

        def note_ran(self, replica: Replica, bit: int) -> None:
            """What is no operation changes an object."""

        def wake_in(self, ns: int) -> None:
            """Have `expire` called after so long, if no earlier time is set."""


class Digests:
    """What one member looks at, and what all have reported."""

    def __init__(self, runtime: Comparing, mode: int) -> None:
        self._runtime = runtime
        self._mode = mode
        self._always = always = mode == ALL
        self._period = 0 if always else PERIOD
        self._turn = 0
        """How many places there were in this view."""
        self._parts: set[Place] = set()
        """Looks that went through a part of the state alone."""
        self._spans: dict[Place, tuple[int, int]] = {}
        """Of each look: the seqno of the look before it, and what has run since, as bits."""
        self._last: dict[int, int] = {}
        """By object: the seqno at which it was looked at last."""
        self._unreported: dict[Place, bytes] = {}
        self._values = self._values_here = 0
        """The cost of a place in values: at the most since the last report, and of the last place."""
        self._here = 0
        self._reported: dict[Place, dict[int, bytes]] = {}
        self._apart: set[int] = set()
        """The incarnations of members that differ, or are not compared with, in this view."""
        self._is_reporting = False
        self._view: View | None = None
        self._reported_apart = False
        """Whether this member has reported to this view that it compares nothing."""
        self._warned = False

    def begin(self) -> None:
        """A view: all members begin anew, and look at all that a joiner has got."""
        runtime = self._runtime
        view = runtime.view
        if view is None:
            return
        self._spans.clear()
        self._parts.clear()
        self._last.clear()
        self._unreported.clear()
        self._reported.clear()
        self._period = 0 if self._always else PERIOD
        self._turn = 0
        self._is_reporting = False
        if view is not self._view:
            self._view = view
            self._apart.clear()
            self._reported_apart = False
        active = (
            self._mode != APART
            and len(view.replicas) > 1
            and not view.position(runtime.incarnation) < 0
        )
        runtime.look_at = 0 if active else NEVER
        runtime.dirty.clear()
        # What has no name any more is about to end, at each member at a time of its own.
        for replica in runtime.replicas:
            if replica is not None:
                replica.ran = 1 << RAN_ENDED
        for number in sorted(runtime.table.names.values()):
            replica = runtime.replicas[number]
            if replica is not None:
                replica.ran = 0
                runtime.note_ran(replica, RAN_VIEW)
        if active:
            self._wake_up()

    def ended(self, replica: Replica) -> None:
        """The end of an object has its place in the order; here it may wait for operations still."""
        self._runtime.dirty.pop(replica, None)
        self._last.pop(replica.number, None)
        replica.ran |= 1 << RAN_ENDED

    def _wake_up(self) -> None:
        if self._runtime.view.primary:
            soon = self._always or self._runtime.dirty
            self._runtime.wake_in(max(REPORT_SOON, min(self._period, REPORT)) if soon else REPORT)

    # Looking.

    def due(self, seqno: int, index: int, stamp: int) -> None:
        """This is a place at which all members look: before what the message there does."""
        runtime = self._runtime
        # On a grid, so members that looked at different places look at the same ones again.
        runtime.look_at = stamp - stamp % self._period + self._period if self._period else stamp
        dirty = runtime.dirty
        if dirty:
            self._turn += 1
            count = self._count(len(dirty))
            replicas = [dirty.popitem(last=False)[0] for _ in range(count)]
            other = runtime.replicas[seqno * 7919 % len(runtime.replicas)]
            if other is not None and not other.ran and other not in replicas:
                replicas.append(other)
            most = None if self._always else LOOKS * VALUES_MAX // max(count, LOOKS)
            for replica in replicas:
                self._look(replica, (seqno, index, replica.number), stamp, most)
        self._wake_up()

    def _count(self, waiting: int) -> int:
        """How many of the objects that wait are looked at in this place.

        Where many wait, each gets a look soon; with few at every other place each gets a deep one.
        """
        if self._always:
            return waiting
        many = min(waiting // LOOKS_MAX, LOOKS_MAX) if self._turn % 2 else 0
        return min(waiting, max(LOOKS, many))

    def _look(self, replica: Replica, place: Place, stamp: int, most: int | None) -> None:
        seqno, index, number = place
        ran, replica.ran = replica.ran, 0
        self._spans[place] = (self._last.get(number, 0), ran)
        self._last[number] = seqno
        if len(self._spans) > PLACES:
            oldest = next(iter(self._spans))
            del self._spans[oldest]
            self._reported.pop(oldest, None)
            self._parts.discard(oldest)
        snaps = replica.info is not None and "snapshot" in replica.info.hooks
        if replica.has(UNDECLARED | DROPPED) or replica.object is None or snaps > self._always:
            self._unreported[place] = NONE
            return
        LookAt(self, place, most, snaps).at(seqno, index, stamp).submit_for([replica])

    def looked(self, place: Place, replica: Replica | None, most: int | None) -> None:
        """Look at an object, at its place and while its mutex is held; None if it was ended."""
        if not self._unreported:
            self._wake_up()  # it may come long after its place, when all else is quiet
        if replica is None:
            self._unreported[place] = NONE
            return
        look = Look(self._runtime.sender.codec, most, place[0])
        try:
            # Without the names of attributes: to ask for them makes a dict, which slows the object.
            self._unreported[place] = (
                look.digest(plain_state(replica))
                if self._always
                else look.digest_of_values(values_of(replica.object))
            )
        except Exception as error:  # noqa: BLE001 - of the user's code, or of this process alone
            _log.info("no digest of the state of %r: %s", replica.name, repr_of(error))
            self._unreported[place] = NONE
        if self._here != place[0]:
            self._here, self._values_here = place[0], 0
        self._values_here += look.values + LOOK_VALUES
        self._values = max(self._values, self._values_here)
        if not look.is_whole:
            self._parts.add(place)
        while len(self._unreported) > KEPT:
            del self._unreported[next(iter(self._unreported))]
        if self._always and len(self._unreported) >= RECORDS_MAX:
            self.report()

    # Reporting.

    def expire(self) -> None:
        """It is time to report, or to look at what was written last."""
        if self._is_apart():
            self._report_apart()
        elif self._unreported or self._runtime.dirty:
            self.report()

    def report(self) -> None:
        """Report to the others, in the order, unless the last report is under way still."""
        runtime = self._runtime
        if self._is_reporting or runtime.sender.failure is not None or runtime.look_at == NEVER:
            return
        records = dict(list(self._unreported.items())[:RECORDS_MAX])
        for place in records:
            del self._unreported[place]
        packed = b"".join(RECORD.pack(*place, digest) for place, digest in records.items())
        values, self._values = self._values, 0
        self._is_reporting = True
        if not self._post(self._mode, values, packed):
            self._is_reporting = False

    def _is_apart(self) -> bool:
        """Whether this member has nothing to compare, by its options or because it has failed."""
        return self._mode == APART or isinstance(self._runtime.sender.failure, ReplicaDivergence)

    def _report_apart(self) -> None:
        """Report, once in a view, that the others are not to wait for digests of this member."""
        if not self._reported_apart and self._view is self._runtime.view:
            self._reported_apart = True
            if not self._post(APART, 0, b""):
                self._reported_apart = False

    def _post(self, mode: int, values: int, packed: bytes) -> bool:
        report = self._runtime.view.number, mode, values, packed
        try:
            self._runtime.sender.post(Code.DIGESTS, report, DIGESTS_OF_STATES, 0)
        except OrcalikeError as error:
            _log.info("%s could not be reported: %s", DIGESTS_OF_STATES, error)
            return False
        return True

    def received(
        self, member: Member, view_number: int, mode: int, values: int, packed: bytes
    ) -> None:
        """A member's report, at its place in the order; that is a place to look at, too.

        Raises ProtocolError for what is malformed.
        """
        if len(packed) % RECORD.size or len(packed) > RECORDS_MAX * RECORD.size:
            raise ProtocolError("a report of digests that is cut short, or too long")
        dirty = self._runtime.dirty
        if member.incarnation == self._runtime.incarnation:
            self._is_reporting = False
            if self._unreported or dirty:
                self._wake_up()
        view = self._view
        if view is None or view_number != view.number or view.position(member.incarnation) < 0:
            return
        if mode != APART and self._is_apart() and not self._reported_apart:
            self._wake_up()
        if self._runtime.look_at == NEVER:
            return
        if mode != self._mode:
            self._leave_out(member, mode)
            return
        if not self._always:
            self._period = max(PERIOD, min(values, VALUES_AT_PLACE) * VALUE_NS * PART)
        for seqno, index, number, digest in RECORD.iter_unpack(packed):
            place = seqno, index, number
            if place in self._spans:
                reported = self._reported.setdefault(place, {})
                reported[member.incarnation] = digest
                self._compare(place, reported)
        # A report without digests asks for a look: so what was written last is looked at.
        if (self._always or not packed) and self._runtime.sender.failure is None and dirty:
            self.due(*self._runtime.place_of())

    def _leave_out(self, member: Member, mode: int) -> None:
        """Do not wait for a member's digests in this view, nor compare with what it has reported."""
        self._apart.add(member.incarnation)
        if mode != APART and not self._warned:
            self._warned = True
            _log.warning(
                "states are not compared with those of %s: ORCALIKE_CHECK=hash is set at one "
                "member and not at the other",
                member,
            )
        for place, reported in list(self._reported.items()):
            self._compare(place, reported)

    # Judging.

    def _compare(self, place: Place, reported: dict[int, bytes]) -> None:
        """All that is known here is from the order: so all members come to the same."""
        members = [m for m in self._runtime.view.replicas if m.incarnation not in self._apart]
        if not all(member.incarnation in reported for member in members):
            return
        del self._reported[place]
        since, ran = self._spans.pop(place, (0, 0))
        in_part = place in self._parts
        self._parts.discard(place)
        groups: dict[bytes, list[Member]] = {}
        for member in members:
            if reported[member.incarnation] != NONE:
                groups.setdefault(reported[member.incarnation], []).append(member)
        if len(groups) < 2:
            return
        # The members of a view are in the order of their age, and so are the groups' first.
        right, *wrong = sorted(groups.values(), key=len, reverse=True)
        odd = [member for group in wrong for member in group]
        self._apart.update(member.incarnation for member in odd)
        replica = self._runtime.replicas[place[2]]
        text = self._description(replica, place, since, ran, [right, *wrong])
        if in_part:
            text += " (it is too large for one look, and looked at in parts: it may be older)"
        if self._runtime.incarnation in self._apart:
            diverged(self._runtime, None, replica, ReplicaDivergence(text))
        else:
            _log.error("%s. %s will serve no more; this member goes on", text, listed(odd))

    def _description(
        self,
        replica: Replica | None,
        place: Place,
        since: int,
        ran: int,
        groups: list[list[Member]],
    ) -> str:
        name = f"object {place[2]}" if replica is None else f"{replica.name!r}"
        kind = "" if replica is None else f" ({replica.class_name})"
        sides = "; ".join(map(listed, groups))
        view = self._runtime.view.number
        begin = f"seqno {since}" if since else f"the beginning of view {view}"
        names = ", ".join(_names(replica, ran)) or "no operation"
        return (
            f"the replicas of {name}{kind} differ since a place between {begin} and seqno "
            f"{place[0]} of the order, in which ran: {names}; members with one state each: {sides}. "
            "Something that an operation returned, or an attribute, was changed outside of a write, or an "
            "operation depends on more than the object and its arguments (ORCALIKE_CHECK=strict finds "
            "attributes that are set, shadow such operations)"
        )


class LookAt(Task):
    """Takes its turn at the object as operations do, and looks at it."""

    def __init__(self, digests: Digests, place: Place, most: int | None, snaps: bool) -> None:
        self._digests, self._place, self._most, self._snaps = digests, place, most, snaps
        self.changes_nothing = True

    def run(self) -> int:
        (replica,) = self.replicas
        if replica.object is None or replica.has(DROPPED):
            self._digests.looked(self._place, None, self._most)
        elif self._snaps:  # it may call operations of its own
            assert replica.info is not None
            title = f"{replica.info.cls.__name__}.snapshot"
            hook = Hook(lambda: self._look(replica), title)
            call = Call(self._digests._runtime, hook, 0, None)
            call.of(None, 0, None).at(self.seqno, self.index, self.stamp).run_held([replica])
        else:
            self._look(replica)
        return OVER

    def _look(self, replica: Replica) -> None:
        self._digests.looked(self._place, replica, self._most)


def _names(replica: Replica | None, ran: int) -> Iterator[str]:
    """What the bits of `Replica.ran` stand for."""
    operations = () if replica is None or replica.info is None else replica.info.operations
    for operation in operations[:RAN_OTHER]:
        if ran >> operation.index & 1:
            yield operation.name
    if operations and ran >> RAN_OTHER & 1:
        others = [operation.name for operation in operations[RAN_OTHER:]]
        yield " or ".join(others)
    if not operations and ran & (1 << RAN_ENDED) - 1:
        yield "operations of a class that is not declared here"
    if ran >> RAN_VIEW & 1:
        yield "what made the state that a joiner got"
    if ran >> RAN_MADE & 1:
        yield "__init__"
    if ran >> RAN_ATOMIC & 1:
        yield "an atomic function"
