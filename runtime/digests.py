"""States are compared: digests of objects at places of the order (promise 13; RELIABILITY I18, I24).

All members look at the same objects at the same places, which follow from the order alone: a packet
whose stamp is a period after that of the last look is such a place, and the objects are those that
were written since they were last looked at, and one more in turn. A look has a bound (`state_digest`),
and the period grows with what looks take, so all of them cost less than a part in two hundred.

Each member tells the others its digests in the order, once in a second in which there were any
(`Code.DIGESTS`). So all of them come to the same judgement at the same place: where the digests of a
place differ, the members with the digest that most have go on, those of the oldest member where no
digest has most, and the others serve no more. A report is a place to look at as well, so what was
written last is looked at and told, and then all is quiet.

A member that compares nothing, or has failed, says so when others report, and is left out of the
judgement; so is one that compares otherwise. What is known of that begins anew with each view.

With `check="hash"` a look follows each write, and goes through all of the object.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from orcalike.runtime.audit import values_of
from orcalike.runtime.changes import Hook
from orcalike.runtime.codes import Code
from orcalike.runtime.errors import ReplicaDivergence
from orcalike.runtime.manager import ATOMIC_BIT, MADE_BIT
from orcalike.runtime.replica import Replica
from orcalike.runtime.state import plain_state
from orcalike.runtime.state_digest import Look
from orcalike.runtime.task import Call, Task
from orcalike.transport.errors import OrcalikeError, ProtocolError
from orcalike.transport.view import Member, View

PERIOD = 50_000_000
"""ns by the order's clock between two places where states are looked at."""
VALUE_NS = 1_500
"""ns that one value of a look takes, at the most."""
PART = 200
"""The period is as many times as long as a look takes."""
VALUES_MAX = 2048
"""Values that a look goes through: the same for each, so equal states have equal digests."""
LOOKS = 3
"""Objects that were written and are looked at in one place."""
SCANNED = 512
"""Objects that are asked whether they were written, in one place."""
REPORT = 1_000_000_000
"""ns after a look until it is told."""
REPORT_SOON = 100_000_000
"""The same where each write is looked at."""
KEPT = 4096
"""Looks of this member that are kept until they are told."""
PLACES = 4 * KEPT
"""Places that are kept until all members have told their looks."""
TOLD_MAX = 1024
"""Looks in one report."""

RECORD = struct.Struct("<QII8s")
"""A look as it is told: seqno, index, number of the object, digest."""
NONE = bytes(8)
"""The digest of a member that cannot look at the object: its class is not declared there, say."""

APART, SOME, ALL = 0, 1, 2
"""How a member compares: not at all, now and then, after each write."""

LOCKED, QUEUED, DROPPED, UNDECLARED = 1, 2, 32, 64
OVER = 0
VIEW_BIT = 61
NEVER = (1 << 64) - 1

_log = logging.getLogger("orcalike")

Place = tuple[int, int, int]
"""seqno, index, and the number of the object."""


class Digests:
    """What one member looks at, and what all have told."""

    def __init__(self, runtime: Any, mode: int) -> None:
        self._runtime = runtime
        self._mode = mode
        self._always = always = mode == ALL
        self._period = 0 if always else PERIOD
        self._parts: set[Place] = set()
        """Looks that went through a part of the state alone."""
        self._spans: dict[Place, tuple[int, int]] = {}
        """Of each look: the seqno of the look before it, and what has run since, as bits."""
        self._last: dict[int, int] = {}
        """By object: the seqno at which it was looked at last."""
        self._untold: dict[Place, bytes] = {}
        self._values = self._values_here = 0
        """What was gone through in one place: at the most since the last report, and in the last."""
        self._here = 0
        self._told: dict[Place, dict[int, bytes]] = {}
        self._apart: set[int] = set()
        """The incarnations of members that differ, or are not compared with, in this view."""
        self._is_reporting = False
        self._view: View | None = None
        self._said_apart = False
        """Whether this member has told the others of this view that it compares nothing."""
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
        self._untold.clear()
        self._told.clear()
        self._period = 0 if self._always else PERIOD
        self._is_reporting = False
        if view is not self._view:
            self._view = view
            self._apart.clear()
            self._said_apart = False
        active = (
            self._mode != APART
            and len(view.replicas) > 1
            and not view.place(runtime.incarnation) < 0
        )
        runtime.look_at = 0 if active else NEVER
        for replica in runtime.replicas:
            if replica is not None:
                replica.take_ran()
                replica.note_ran(VIEW_BIT)
        if active:
            self._wake_up()

    def _wake_up(self) -> None:
        if self._runtime.view.primary:
            self._runtime.wake_in(REPORT_SOON if self._always else REPORT)

    # Looking.

    def due(self) -> None:
        """This is a place at which all members look."""
        runtime = self._runtime
        seqno, index, stamp = runtime.place_of()
        # On a grid, so members that looked at different places look at the same ones again.
        runtime.look_at = stamp - stamp % self._period + self._period if self._period else stamp
        replicas: list[Replica | None] = runtime.replicas
        count = len(replicas)
        most = count if self._always else LOOKS
        found: list[Replica] = []
        for step in range(count if self._always else min(count, SCANNED)):
            replica = replicas[(seqno + step) % count]
            if replica is not None and replica.ran:
                found.append(replica)
                if len(found) == most:
                    break
        self._wake_up()
        if not found:
            return
        if not self._always:
            other = replicas[seqno * 7919 % count]
            if other is not None and other not in found:
                found.append(other)
        for replica in found:
            self._look(replica, seqno, index, stamp)

    def _look(self, replica: Replica, seqno: int, index: int, stamp: int) -> None:
        place = (seqno, index, replica.number)
        self._spans[place] = (self._last.get(replica.number, 0), replica.take_ran())
        self._last[replica.number] = seqno
        if len(self._spans) > PLACES:
            oldest = next(iter(self._spans))
            del self._spans[oldest]
            self._told.pop(oldest, None)
            self._parts.discard(oldest)
        snaps = replica.info is not None and "snapshot" in replica.info.hooks
        if replica.has(UNDECLARED | DROPPED) or replica.object is None or snaps > self._always:
            self._untold[place] = NONE
            return
        LookAt(self, place, snaps).at(seqno, index, stamp).submit_for([replica])

    def looked(self, place: Place, replica: Replica | None) -> None:
        """Look at an object, at its place and while its mutex is held; None where it was ended."""
        if replica is None:
            self._untold[place] = NONE
            return
        look = Look(self._runtime.codec, None if self._always else VALUES_MAX, place[0])
        try:
            # Without the names of attributes: to ask for them makes a dict, which slows the object.
            self._untold[place] = (
                look.digest(plain_state(replica))
                if self._always
                else look.digest_of_values(values_of(replica.object))
            )
        except Exception as error:  # noqa: BLE001 - of the user's code, or of this process alone
            _log.info("no digest of the state of %r: %r", replica.name, error)
            self._untold[place] = NONE
        if self._here != place[0]:
            self._here, self._values_here = place[0], 0
        self._values_here += look.values
        self._values = max(self._values, self._values_here)
        if not look.is_whole:
            self._parts.add(place)
        while len(self._untold) > KEPT:
            del self._untold[next(iter(self._untold))]
        if self._always and len(self._untold) >= TOLD_MAX:
            self.tell()

    # Telling.

    def expire(self) -> None:
        """It is time to tell, or to look at what was written last."""
        if self._is_apart():
            self._say_apart()
            return
        replicas: Iterable[Replica | None] = self._runtime.replicas
        if self._untold or any(replica is not None and replica.ran for replica in replicas):
            self.tell()

    def tell(self) -> None:
        """Tell the others, in the order, unless the last report is under way still."""
        runtime = self._runtime
        if self._is_reporting or runtime.failure is not None or runtime.look_at == NEVER:
            return
        told = dict(list(self._untold.items())[:TOLD_MAX])
        for place in told:
            del self._untold[place]
        packed = b"".join(RECORD.pack(*place, digest) for place, digest in told.items())
        values, self._values = self._values, 0
        self._is_reporting = True
        if not self._post(self._mode, values, packed):
            self._is_reporting = False

    def _is_apart(self) -> bool:
        """Whether this member has nothing to compare, as it was told or because it has failed."""
        return self._mode == APART or isinstance(self._runtime.failure, ReplicaDivergence)

    def _say_apart(self) -> None:
        """Tell the others, once in a view, that they are not to wait for digests of this member."""
        if not self._said_apart and self._view is self._runtime.view:
            self._said_apart = True
            if not self._post(APART, 0, b""):
                self._said_apart = False

    def _post(self, mode: int, values: int, packed: bytes) -> bool:
        report = self._runtime.view.number, mode, values, packed
        try:
            self._runtime.post(Code.DIGESTS, report, "digests of states", 0)
        except OrcalikeError as error:
            _log.info("the others were not told digests of states: %s", error)
            return False
        return True

    def received(
        self, member: Member, view_number: int, mode: int, values: int, packed: bytes
    ) -> None:
        """A member's report, at its place in the order; that is a place to look at, too.

        Raises ProtocolError for what is malformed.
        """
        if len(packed) % RECORD.size or len(packed) > TOLD_MAX * RECORD.size:
            raise ProtocolError("a report of digests that is cut short, or too long")
        if member.incarnation == self._runtime.incarnation:
            self._is_reporting = False
            if self._untold or self._is_dirty():
                self._wake_up()
        view = self._view
        if view is None or view_number != view.number or view.place(member.incarnation) < 0:
            return
        if mode != APART and self._is_apart() and not self._said_apart:
            self._wake_up()
        if self._runtime.look_at == NEVER:
            return
        if mode != self._mode:
            self._leave_out(member, mode)
            return
        if not self._always:
            self._period = max(PERIOD, min(values, 2 * (LOOKS + 1) * VALUES_MAX) * VALUE_NS * PART)
        for seqno, index, number, digest in RECORD.iter_unpack(packed):
            place = seqno, index, number
            if place in self._spans:
                told = self._told.setdefault(place, {})
                told[member.incarnation] = digest
                self._judge(place, told)
        # What has nothing to tell asks for a look: so what was written last is looked at.
        asks = self._always or not packed
        if asks and self._runtime.failure is None and self._is_dirty():
            self.due()

    def _leave_out(self, member: Member, mode: int) -> None:
        """Do not wait for a member's digests in this view, nor compare with what it has told."""
        self._apart.add(member.incarnation)
        if mode != APART and not self._warned:
            self._warned = True
            _log.warning(
                "states are not compared with those of %s: ORCALIKE_CHECK=hash is set at one "
                "member and not at the other",
                member,
            )
        for place, told in list(self._told.items()):
            self._judge(place, told)

    def _is_dirty(self) -> bool:
        return any(replica is not None and replica.ran for replica in self._runtime.replicas)

    # Judging.

    def _judge(self, place: Place, told: dict[int, bytes]) -> None:
        """All that is known here is from the order: so all members come to the same."""
        members = [m for m in self._runtime.view.replicas if m.incarnation not in self._apart]
        if not all(member.incarnation in told for member in members):
            return
        del self._told[place]
        since, ran = self._spans.pop(place, (0, 0))
        in_part = place in self._parts
        self._parts.discard(place)
        groups: dict[bytes, list[Member]] = {}
        for member in members:
            if told[member.incarnation] != NONE:
                groups.setdefault(told[member.incarnation], []).append(member)
        if len(groups) < 2:
            return
        # The members of a view are in the order of their age, and so are the groups' first.
        right, *wrong = sorted(groups.values(), key=len, reverse=True)
        odd = [member for group in wrong for member in group]
        self._apart.update(member.incarnation for member in odd)
        replica = self._runtime.replicas[place[2]]
        text = self._say(replica, place, since, ran, [right, *wrong])
        if in_part:
            text += " (it is too large for one look, and looked at in parts: it may be older)"
        if self._runtime.incarnation in self._apart:
            self._runtime.diverged(None, replica, ReplicaDivergence(text))
        else:
            names = " and ".join(map(str, odd))
            _log.error("%s. %s will serve no more; this member goes on", text, names)

    def _say(
        self,
        replica: Replica | None,
        place: Place,
        since: int,
        ran: int,
        groups: list[list[Member]],
    ) -> str:
        name = f"object {place[2]}" if replica is None else f"{replica.name!r}"
        kind = "" if replica is None else f" ({replica.class_name})"
        sides = "; ".join(" and ".join(map(str, group)) for group in groups)
        view = self._runtime.view.number
        begin = f"seqno {since}" if since else f"the beginning of view {view}"
        names = ", ".join(_names(replica, ran)) or "no operation"
        return (
            f"the replicas of {name}{kind} differ since a place between {begin} and seqno "
            f"{place[0]} of the order, in which ran: {names}; members with one state each: {sides}"
        )


class LookAt(Task):
    """Takes its turn at the object as operations do, and looks at it."""

    def __init__(self, digests: Digests, place: Place, snaps: bool) -> None:
        self._digests, self._place, self._snaps = digests, place, snaps

    def run(self) -> int:
        (replica,) = self.replicas
        if replica.object is None or replica.has(DROPPED):
            self._digests.looked(self._place, None)
        elif self._snaps:  # it may call operations of its own
            call = Call(
                self._digests._runtime, Hook(lambda: self._look(replica), "snapshot"), 0, None
            )
            call.of(None, 0, None).at(self.seqno, self.index, self.stamp).run_held([replica])
        else:
            self._look(replica)
        return OVER

    def _look(self, replica: Replica) -> None:
        self._digests.looked(self._place, replica)


def _names(replica: Replica | None, ran: int) -> Iterator[str]:
    """What the bits stand for."""
    operations = () if replica is None or replica.info is None else replica.info.operations
    special = {VIEW_BIT: "what made the state that a joiner got", MADE_BIT: "__init__"}
    special[ATOMIC_BIT] = "an atomic function"
    for bit in range(64):
        if ran >> bit & 1:
            yield operations[bit].name if bit < len(operations) else special.get(bit, "another one")
