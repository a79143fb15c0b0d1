"""Checkers: objects that watch every member of a simulated group at every delivery.

Each checks one promise of docs/model.md (the invariants I1 to I27 that test them), and
raises `Violation` at the event that breaks it. What they are told is what applications see, so
that a recorded history can be fed to them as well as a simulation. Members are named by their
incarnation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

Place = tuple[int, int]
"""(seqno, index): a place in the total order."""


class Violation(AssertionError):
    """A promise was broken; it names the checker, the member and the event."""


class Unfinished(Violation):
    """What must come in the end had not come when nothing was under way any more."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A view, as a member saw it."""

    identity: tuple[int, int, int]
    members: tuple[int, ...]
    """All of them, oldest first."""
    replicas: tuple[int, ...]
    """Those that are no witnesses."""


class Checker:
    """Watches the members of one group; the calls that a checker does not need do nothing."""

    def cast(self, member: int, body: bytes) -> None:
        """`member` casts `body`."""

    def deliver(self, member: int, place: Place, source: int, body: bytes) -> None:
        """`body` of `source` is delivered at `member`, at this place in the order."""

    def view(self, member: int, view: Installed) -> None:
        """`view` is installed at `member`."""

    def state(self, member: int, donor: Sequence[Event]) -> None:
        """`member` got its state: what its donor had seen. `view` follows, which is part of it."""

    def exit(self, member: int) -> None:
        """`member` left."""

    def finish(self, live: Sequence[int]) -> None:
        """Nothing is under way any more; `live` are in the group."""

    def fail(self, member: int, what: str, kind: type[Violation] = Violation) -> None:
        """Raise the violation."""
        raise kind(f"{type(self).__name__}: at {member:x}: {what}")


Event = tuple[int, int, int, bytes] | Installed
"""What an application sees: (seqno, index, source, body), or a view."""


class SameOrder(Checker):
    """I1, promise 1: one place in the order holds one cast, at all members."""

    def __init__(self) -> None:
        self._canon: dict[Place, tuple[int, bytes]] = {}
        self._last: dict[int, Place] = {}

    def deliver(self, member: int, place: Place, source: int, body: bytes) -> None:
        if self._canon.setdefault(place, (source, body)) != (source, body):
            self.fail(member, f"another cast at {place} than elsewhere: {body!r:.40}")
        last = self._last.get(member, (0, 0))
        if place <= last:
            self.fail(member, f"{place} after {last}")
        self._last[member] = place


class NoGap(Checker):
    """I2, promise 1; I14 (A09): members see one sequence of casts and views, without a gap."""

    def __init__(self) -> None:
        self.canon: list[Event] = []
        self._views: dict[tuple[int, int, int], int] = {}
        self._at: dict[int, int] = {}

    def _see(self, member: int, event: Event) -> None:
        at = self._at[member]
        if at == len(self.canon):
            self.canon.append(event)
        elif self.canon[at] != event:
            self.fail(member, f"{event!r:.80} where others saw {self.canon[at]!r:.80}")
        self._at[member] = at + 1

    def deliver(self, member: int, place: Place, source: int, body: bytes) -> None:
        if member not in self._at:
            self.fail(member, f"{place} before any view")
        self._see(member, (*place, source, body))

    def view(self, member: int, view: Installed) -> None:
        start = self._views.setdefault(view.identity, self._at.get(member, len(self.canon)))
        self._at.setdefault(member, start)  # a joiner begins with the view
        self._see(member, view)

    def finish(self, live: Sequence[int]) -> None:
        for member in live:
            if self._at[member] != len(self.canon):
                missed = self.canon[self._at[member]]
                self.fail(member, f"it never saw {missed!r:.80}", Unfinished)


class SenderOrder(Checker):
    """I3, promises 2 and 3: a sender's casts come in its order, each once, and no others."""

    def __init__(self) -> None:
        self._sent: dict[int, list[bytes]] = defaultdict(list)
        self._seen: dict[int, dict[int, int]] = {}

    def cast(self, member: int, body: bytes) -> None:
        self._sent[member].append(body)

    def view(self, member: int, view: Installed) -> None:
        self._seen.setdefault(member, defaultdict(int))

    def state(self, member: int, donor: Sequence[Event]) -> None:
        seen = self._seen[member] = defaultdict(int)
        for event in donor:
            if not isinstance(event, Installed):
                seen[event[2]] += 1

    def deliver(self, member: int, place: Place, source: int, body: bytes) -> None:
        seen = self._seen[member]
        sent = self._sent[source]
        count = seen[source]
        if count >= len(sent):
            self.fail(member, f"{body!r:.40} of {source:x}, which has cast {len(sent)}")
        if sent[count] != body:
            self.fail(member, f"{body!r:.40} where {sent[count]!r:.40} of {source:x} is next")
        seen[source] = count + 1

    def finish(self, live: Sequence[int]) -> None:
        """Validity: what a live member has cast was delivered at all live members."""
        for member in live:
            for source in live:
                seen, sent = self._seen[member][source], len(self._sent[source])
                if seen != sent:
                    self.fail(member, f"{seen} of {sent} casts of {source:x}", Unfinished)


class VirtualSynchrony(Checker):
    """I11, promise 5 (H03): members that go from V to V' delivered the same in V."""

    def __init__(self) -> None:
        self._in: dict[int, tuple[Installed, list[Place]]] = {}
        self._agreed: dict[tuple[Installed, Installed], tuple[int, list[Place]]] = {}
        self._members: set[int] = set()
        """Of any view so far: what was tentative is delivered when its sender has left."""

    def deliver(self, member: int, place: Place, source: int, body: bytes) -> None:
        _, places = self._in[member]
        if source not in self._members:
            self.fail(member, f"{place} of {source:x}, which was in no view")
        places.append(place)

    def view(self, member: int, view: Installed) -> None:
        if member in self._in:
            before, places = self._in[member]
            other, agreed = self._agreed.setdefault((before, view), (member, places))
            if agreed != places:
                self.fail(
                    member,
                    f"{len(places)} casts before {view.identity}, not the same as "
                    f"{len(agreed)} at {other:x}",
                )
        self._in[member] = view, []
        self._members.update(view.members)


class ViewSanity(Checker):
    """I13, promise 5: views grow at each member, are the same everywhere, and include oneself."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int, int]] = {}
        self._known: dict[tuple[int, int, int], tuple[int, ...]] = {}

    def view(self, member: int, view: Installed) -> None:
        if view.identity <= self._last.get(member, (0, 0, 0)):
            self.fail(member, f"view {view.identity} after {self._last[member]}")
        if self._known.setdefault(view.identity, view.members) != view.members:
            self.fail(member, f"other members in view {view.identity} than elsewhere")
        if member not in view.members:
            self.fail(member, f"it is not in its view {view.identity}")
        if len(set(view.members)) != len(view.members):
            self.fail(member, f"a member is twice in view {view.identity}")
        self._last[member] = view.identity

    def exit(self, member: int) -> None:
        self._last[member] = (1 << 32, 0, 0)  # no view comes after that


@dataclass
class JoinState(Checker):
    """I17, promise 11: a joiner's state is what all had seen at the view that admits it."""

    canon: NoGap
    """Where the history of all is known."""
    _states: dict[int, Sequence[Event]] = field(default_factory=dict)
    _began: dict[int, int] = field(default_factory=dict)
    """Where in the history of all a member's own begins."""

    def state(self, member: int, donor: Sequence[Event]) -> None:
        self._states[member] = donor

    def view(self, member: int, view: Installed) -> None:
        if member in self._began:
            return
        canon = self.canon.canon
        end = canon.index(view) + 1 if view in canon else len(canon)
        state = self._states.pop(member, None)
        if state is None:
            self._begin_empty(member, view, end)
            return
        if not state or state[-1] != view:
            self.fail(member, f"its state does not end with {view.identity}, which admits it")
        self._began[member] = end - len(state)
        if canon[end - len(state) : end] != list(state):
            self.fail(member, f"its state is not what others had seen at {view.identity}")

    def _begin_empty(self, member: int, view: Installed, end: int) -> None:
        """Right for a witness, and if no replica was there that had seen a cast."""
        self._began[member] = end
        for other in view.replicas:
            past = self.canon.canon[self._began.get(other, end) : end]
            if member in view.replicas and not all(isinstance(event, Installed) for event in past):
                self.fail(member, f"it got no state at {view.identity}, and {other:x} had one")


def all_checkers() -> list[Checker]:
    """One of each, in the order in which they are to be told."""
    canon = NoGap()
    sanity: list[Checker] = [SameOrder(), ViewSanity(), VirtualSynchrony(), SenderOrder()]
    return [*sanity, JoinState(canon), canon]


class Watch(Checker):
    """Tells each event to all checkers."""

    def __init__(self) -> None:
        self.checkers = all_checkers()
        self.delivered = 0
        self.views = 0

    def cast(self, member: int, body: bytes) -> None:
        for checker in self.checkers:
            checker.cast(member, body)

    def deliver(self, member: int, place: Place, source: int, body: bytes) -> None:
        self.delivered += 1
        for checker in self.checkers:
            checker.deliver(member, place, source, body)

    def view(self, member: int, view: Installed) -> None:
        self.views += 1
        for checker in self.checkers:
            checker.view(member, view)

    def state(self, member: int, donor: Sequence[Event]) -> None:
        for checker in self.checkers:
            checker.state(member, donor)

    def exit(self, member: int) -> None:
        for checker in self.checkers:
            checker.exit(member)

    def finish(self, live: Sequence[int]) -> None:
        for checker in self.checkers:
            checker.finish(live)
