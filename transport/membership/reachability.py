"""Which members can be reached: heartbeats and links, as the agreement is to know of them (H65, H13).

A link that breaks is a suspicion at once, and leaves a gap that only a new view closes; silence is
one after the detection time. Either is over when the member is heard, or linked, again; what was
under way meanwhile may be lost, so it is said again then.

Where the kernel tells of each death, and no member can be cut off, silence matters only while a member is held up by
others: then it sends heartbeats, which they answer, and asks those that would go on without a silent one to do as much
(`held_up`, `asked_to_watch`). Else none are sent.

The clock is the caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from orcalike.transport.membership import events
from orcalike.transport.membership.agreement import Agreement
from orcalike.transport.membership.failure_detector import FailureDetector
from orcalike.transport.membership.lease import ALL_WATCHED
from orcalike.transport.membership.messages import ControlMessage, HeldUp, Here
from orcalike.transport.membership.participant import OLDEST_WATCHED
from orcalike.transport.view import Member, View

ASKED = 2
"""So many detection times after it was asked to, for one that is held up, a member watches the others."""

HELD_UP = 5
"""A member is held up for a detection time through this before it watches others: most waits are over by then."""


if TYPE_CHECKING:
    from orcalike.transport.layers.base import Core

    class Port(Protocol):
        """What this needs of the layer that it works for."""

        def step(self, event: events.Event) -> None:
            """A step of the agreement, and all that follows from it."""

        def schedule(self) -> None:
            """Have the agreement go on when this input has been dealt with."""

        def plan(self) -> None:
            """A deadline has changed."""

        @property
        def core(self) -> Core:
            """Which says whether silence matters only while this member is held up, and has the heartbeat peers."""

        def is_held_up(self) -> bool:
            """Whether this member waits for others."""

        def tell(self, position: int, message: ControlMessage) -> None:
            """Send a control message to the member at `position`."""

        def suspected(self, incarnation: int, why: str) -> None:
            """Say that a member of the view is suspected."""

        def unsettle(self, incarnation: int | None) -> None:
            """Have the leader begin a new view, which closes the gap that a broken link has left."""

        def say_again(self, incarnation: int) -> None:
            """A member can be reached anew: what was under way to it, or from it, may be lost."""


class Reachability:
    """The members that are silent, and those whose link is down."""

    def __init__(self, port: Port, agreement: Agreement, me: int, detection: int) -> None:
        """`me` is this member's incarnation, `detection` the detection time D in ns."""
        self._port = port
        self._agreement = agreement
        self._me = me
        self.detector = FailureDetector(detection)
        self._attends = False
        self._asked_at: int | None = None
        """When another member last said that it is held up, ns."""
        self.attend_at: int | None = None
        """When to begin to watch the others, ns, if this member is still held up then."""
        self.unlinked: dict[int, str] = {}
        """By incarnation: why the link to a member is down."""

    def enter(self, view: View) -> None:
        """Only the links to the members of this view matter from here on."""
        present = {member.incarnation for member in view.members}
        self.unlinked = {each: why for each, why in self.unlinked.items() if each in present}

    def watch(self, now: int, *, is_all: bool = False) -> None:
        """Take the oldest as heartbeat peers, or all if this is one of them, and watch them.

        `is_all`: none of the oldest is there, as seen here, so the leader is watched like them.
        """
        view, position = self._agreement.view, self._agreement.position
        members = view.members if view is not None and self._watches() else ()
        if not is_all and position >= OLDEST_WATCHED and len(members) > ALL_WATCHED:
            members = members[:OLDEST_WATCHED]
        peers = tuple(member for member in members if member.incarnation != self._me)
        if not self._set_peers(peers) and is_all:
            return
        listen = self.detector.watch_too if is_all else self.detector.watch
        listen([member.incarnation for member in peers], now)
        self._port.plan()

    def _set_peers(self, peers: tuple[Member, ...]) -> bool:
        """Send heartbeats to these, and no others; whether they are others than before."""
        core, answers = self._port.core, self._agreement.view is not None
        if (peers, answers) == (core.beats, core.answers):
            return False
        core.beats, core.answers = peers, answers
        core.beats_version += 1
        return True

    def held_up(self, now: int) -> None:
        """This member is held up: if it is after a while, too, the others are watched, until it is not."""
        if self.attend_at is None and not self._watches():
            self.attend_at = now + self.detector.detection // HELD_UP

    def asked_to_watch(self, now: int) -> None:
        """Another member is held up, and this one may be the one that is to go on without a silent one."""
        self._asked_at = now
        if self._port.core.rests:
            self._set_attends(True, now)

    def _needs_to_watch(self, now: int) -> bool:
        """Whether this member is held up, or another one; if this one is, others are asked to watch as well."""
        if not self._port.is_held_up():
            return (
                self._asked_at is not None
                and now - self._asked_at < ASKED * self.detector.detection
            )
        view = self._agreement.view
        members = view.members if view is not None else ()
        if len(members) > ALL_WATCHED:
            members = members[:OLDEST_WATCHED]
        for position, member in enumerate(members):
            if member.incarnation != self._me and not self._agreement.known.is_out(
                member.incarnation
            ):
                self._port.tell(position, HeldUp())
        return True

    def _watches(self) -> bool:
        return self._attends or not self._port.core.rests

    def _set_attends(self, attends: bool, now: int) -> None:
        self.attend_at = None
        if attends != self._attends:
            self._attends = attends
            self.watch(now)

    def report(self, now: int) -> None:
        """Say to the agreement which members are suspected now."""
        agreement = self._agreement
        suspects = frozenset(self.detector.silent | self.unlinked.keys())
        self._port.step(events.Suspected(suspects))
        if agreement.view is not None and OLDEST_WATCHED <= min(
            agreement.position, agreement.leader
        ):
            self.watch(now, is_all=True)
        self._port.schedule()

    def check_silence(self, now: int) -> bool:
        """Look which members are silent, if that is due; whether it was. Or begin to watch them."""
        detector = self.detector
        if self.attend_at is not None and self.attend_at <= now:
            self._set_attends(self._needs_to_watch(now), now)
        if detector.deadline is None or now < detector.deadline:
            return False
        if self._port.core.rests and not self._needs_to_watch(now) and not detector.silent:
            self._set_attends(False, now)
            return False
        before = set(detector.silent)
        if detector.check(now):
            for incarnation in sorted(detector.silent - before):
                self._port.suspected(incarnation, "it is silent")
            heard_again = sorted(before - detector.silent)
            self.report(now)
            for incarnation in heard_again:
                self._port.say_again(incarnation)
                view = self._agreement.view
                if view is not None and (position := view.position(incarnation)) >= 0:
                    # It may have gone on without this member, whose link may be a dead one.
                    self._port.tell(position, Here())
        return True

    def link_broke(
        self, incarnation: int, why: str, now: int, *, is_replaced: bool, is_leaving: bool
    ) -> None:
        """The link to a member of the view broke.

        `is_replaced`: another one stands already; `is_leaving`: this member leaves, and so may they.
        """
        if is_replaced:  # what went by the first one is lost
            self._port.unsettle(incarnation)
            self._port.say_again(incarnation)
            return
        proposed = self._agreement.proposed()
        departs = proposed is not None and proposed.position(incarnation) < 0
        self.unlinked[incarnation] = why
        if not departs and not is_leaving:
            self._port.suspected(incarnation, why)
        self.report(now)
        self._port.unsettle(incarnation)

    def link_stands(self, incarnation: int, now: int, *, was_missed: bool) -> bool:
        """A link stands; whether there was none. `was_missed`: something could not be sent meanwhile."""
        if self.unlinked.pop(incarnation, None) is None:
            return False
        self.report(now)
        if self._agreement.known.unsettled or was_missed:
            self._port.unsettle(incarnation)  # that word may have been lost with a link, too
        return True
