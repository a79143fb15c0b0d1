"""Leases: which deaths excuse a member from the quorum (Gray and Cheriton, "Leases", 1989, section 2).

A member that is certainly dead may have decided on a view before it died, a view that lets a new
member in or that names fewer. So a certain death excuses it from the quorum only if a member that
is there can vouch that it decided nothing that is unknown there. That is what a lease is for.

*Granting.* Each heartbeat of a member L to a member X of its view V grants a lease: L decides on no
view after V without the acceptance of X until `span` has passed since that beat was sent. A beat
grants only if L had contact with X within `window`, and none grants while L proposes a value that X has not accepted. As L installs V
it grants one to each member of V that is on its host: else it would be some beats until X has any.

*Deciding.* A coordinator that has the acceptances of a quorum decides at once if all others of V
have accepted or are certainly dead. Else it waits until its leases to the rest are over. Meanwhile it grants leases to those
that have accepted, as it can decide on nothing else: if it ends right after that, they can vouch for it. They are notified as well
that they are enough (CHOSEN), so that they can decide on that view if it ends before. Neither is done while the acceptances of the
rest may still be under way (`grace`).

*Vouching.* X knows of a beat from L that it was sent after X's own beat which it echoes, by X's own
clock at `leased`. If X sees the end of L's process before `leased + span`, L was within its lease to
X when it died, so it had decided nothing that X had not accepted; X vouches for L. It knows as well that L installed V
after X had said for the first time what V could follow from: its report, or that it wants to join. That may be long ago, as where a
member was waited for that stood still. So a lease of the view right before V counts in V, too, if all are heartbeat peers in V:
L waits for the last one that it granted to X, in whichever view.

Leases are granted only to members that learn of deaths for certain: those of the same host. L has
ended before X sees its end, so within the span, for both have one clock. The clocks of two hosts
do not even run equally fast: one that is suspended stands still, and X would vouch by a lease that L has
waited out. So no death is certain across hosts (docs/internals/decisions, ADR-13 has the proof). A
report may tell of a death there all the same: X vouches, and X is among those that go on.

*In memory.* Where members have their order in shared memory no beat grants a lease. A coordinator that is about to decide
without the acceptance of a member that may live says so there (`up_alone`), so that one that sees its end knows whether it
has, however long ago. It waits for those that it has proposed to as long as a lease lasts: what all of them have accepted
each of them can vouch for.

With the silence limit D, `window + span` is 1.2 D: a member that stops is excused 0.2 D after it is
suspected at the latest.
"""

from __future__ import annotations

from collections.abc import Iterable

from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.view import Member, View, share_host

ALL_WATCHED = 8
"""In a view of so many members each is a heartbeat peer of all, and so has the leases of all."""

ENDS_MAX = MEMBERS_MAX
"""Ends of processes that a member remembers, the last ones: a view that is still to come may have such a member."""


def span_of(detection: int) -> int:
    """How long a lease lasts, ns, where a member is suspected after `detection` ns of silence."""
    return detection * 7 // 10


def window_of(detection: int) -> int:
    """How old contact may be if a heartbeat is to grant a lease, ns."""
    return detection // 2


class Leases:
    """The leases that a member has granted, as far as it must wait for their end.

    While it grants them, the driver counts; when it has ended them, the driver says when it last
    granted one to each member (`ended`).
    """

    def __init__(self, detection: int) -> None:
        self.span = span_of(detection)
        self.in_memory = False
        """Whether members say in memory what they decide alone, and grant none by beats."""
        self._proposed_at = 0
        self._proposed_to: frozenset[int] = frozenset()
        """In memory: members that this one has proposed a value to, at that time."""
        self._spoke_at: int | None = None
        """When this member first said what the next view may follow from, ns."""
        self._leased_at: int | None = None
        """The same of the view that is installed: all its members installed it later."""
        self._began = 0
        self._keys: tuple[int, ...] = ()
        """Of the views whose leases count: the one that is installed, and the one before it."""
        self._ends: dict[int, tuple[int, int, int]] = {}
        """When the process of a member of this host was seen to end, by incarnation, with the key and the age of its last lease;
        of one that is in no view yet, too."""
        self._near: frozenset[int] = frozenset()
        """Members of this host, which got a lease when that was installed here."""
        self._granted: dict[int, int] | None = {}
        """When the last lease was granted, by incarnation; None until the driver has said so."""

    def speak(self, now: int) -> None:
        """This member says what it holds, or that it wants to join, at the time `now`, ns."""
        if self._spoke_at is None:
            self._spoke_at = now

    def begin(self, view: View, me: Member, now: int) -> None:
        """A view is installed here: its members on this host have a lease."""
        self._leased_at, self._spoke_at, self._began = self._spoke_at, None, now
        # Where not all are heartbeat peers any more the driver forgets what was granted before.
        forgets = self.in_memory or len(view.members) > ALL_WATCHED
        self._keys = (view.key,) if forgets else (view.key, *self._keys[:1])
        near = (each for each in view.members if share_host(each.address, me.address))
        self._near = frozenset(each.incarnation for each in near)

    def ended_at(self, incarnation: int, now: int, key: int = 0, age: int = -1) -> bool:
        """The process of a member was seen to end; whether it decided nothing in the view without this member.

        `key` is that of the view of its last lease, 0 if there is none, and `age` the time since the beat of this member
        that the lease answers, ns.
        """
        self._ends[incarnation] = now, key, age
        if len(self._ends) > ENDS_MAX:
            del self._ends[next(iter(self._ends))]
        return self._is_vouched(incarnation)

    def _is_vouched(self, incarnation: int) -> bool:
        now, key, age = self._ends[incarnation]
        began = self._leased_at is not None and now - self._leased_at < self.span
        return began or (key in self._keys and 0 <= age < self.span)

    def seen_to_end(self) -> set[int]:
        """The members of the view that were seen to end, before it was installed here too: a joiner may end as it is let in."""
        return {each for each in self._ends if each in self._near}

    def vouched(self) -> set[int]:
        """Those of them that decided nothing in the view without this member."""
        return set(filter(self._is_vouched, self.seen_to_end()))

    def end(self, now: int, proposed_to: Iterable[int]) -> None:
        """No lease is granted from here on, as a value is proposed; `ended` says what was granted before."""
        self._granted = None
        self._proposed_at = now
        self._proposed_to = frozenset(proposed_to) if self.in_memory else frozenset()

    def ended(self, granted: Iterable[tuple[int, int]]) -> None:
        """The driver grants none any more, and granted the last ones at these times, ns."""
        self._granted = dict(granted)

    @property
    def are_known(self) -> bool:
        """Whether the driver has said when it granted the last ones."""
        return self._granted is not None

    @property
    def grace(self) -> int:
        """How long a coordinator with enough acceptances only waits for the others, ns; less than the time between two beats."""
        return self.span // 4

    def over_at(self, incarnation: int) -> int | None:
        """When the last lease to a member is over, ns; None until that is known."""
        if self._granted is None:
            return None
        granted = self._granted.get(incarnation, 0)
        if incarnation in self._near:
            granted = max(granted, self._began)
        if incarnation in self._proposed_to:
            granted = max(granted, self._proposed_at)
        return granted + self.span if granted else 0
