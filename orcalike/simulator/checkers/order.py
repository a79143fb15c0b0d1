"""I1 to I7: one order, without gaps, each cast once, in its sender's order, from nowhere else.

With degree 0 an acknowledged cast may be lost with the sequencer (H4), so its position may be given
again in a later view, or the cast get another one; never within a view, and never if a cast
of degree 1 or more was delivered behind it, whose holders hold it as well.
"""

from __future__ import annotations

from collections import defaultdict

from orcalike.simulator.checkers.facts import Checker, Facts, Identity, Key, Name


class TotalOrder(Checker):
    """I1: a place in the order holds one cast, at all members, those that crashed too."""

    id = "I1"

    def deliver(self, member: int, key: Key, name: Name, body: bytes, holders: int | None) -> None:
        facts = self.facts
        view = facts.seen[member].view
        assert view is not None
        before = facts.placed.get((view.lineage, key))
        if before is None or before[0] == name:
            return
        other, where = before
        if view.number < where[1] and not facts.casts[name].degree:
            return  # a member that the group went on without, and degree 0
        if where == view.identity or facts.is_pinned(where, key):
            self.fail(
                member, f"cast {name[1]} of {name[0]:x} at {key}; {other[1]} of {other[0]:x} is"
            )


class NoGap(Checker):
    """I2: places only grow at a member, and it misses none that others of its view got."""

    id = "I2"

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._keys: dict[Identity, list[Key]] = defaultdict(list)

    def deliver(self, member: int, key: Key, name: Name, body: bytes, holders: int | None) -> None:
        seen = self.facts.seen[member]
        view = seen.view
        if view is None:
            self.fail(member, f"{key} before any view")
            return
        if key <= seen.last:
            self.fail(member, f"{key} after {seen.last}")
        seqno, index = key
        if index != (seen.last[1] + 1 if seqno == seen.last[0] else 0):
            self.fail(member, f"{key} after {seen.last}: part of a packet is missing")
        keys = self._keys[view.identity]
        if seen.count == len(keys):
            keys.append(key)
        elif keys[seen.count] != key:
            self.fail(member, f"{key} where others of the view got {keys[seen.count]}")


class AtMostOnce(Checker):
    """I3: a cast has one place in the order, and is delivered once at each member."""

    id = "I3"

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._places: dict[tuple[int, Name], tuple[Key, Identity]] = {}

    def deliver(self, member: int, key: Key, name: Name, body: bytes, holders: int | None) -> None:
        facts = self.facts
        seen = facts.seen[member]
        assert seen.view is not None
        if name[1] <= seen.sources.get(name[0], 0):
            self.fail(member, f"cast {name[1]} of {name[0]:x} once more, at {key}")
        view = seen.view
        before = self._places.get((view.lineage, name))
        if before is not None and before[0] != key:
            place, where = before
            if view.number < where[1] and not facts.casts[name].degree:
                return
            if where == view.identity or facts.is_pinned(where, place):
                self.fail(member, f"cast {name[1]} of {name[0]:x} at {key}, and at {place}")
        self._places[view.lineage, name] = key, view.identity


class ExactlyOnce(Checker):
    """I4: in the end, what live members have cast was delivered at all of them, and no more."""

    id = "I4"

    def finish(self, live: list[int], blocked: bool) -> None:
        for member, seen, _ in self.facts.served_by(live, blocked):
            for source in live:
                had, sent = seen.sources.get(source, 0), self.facts.sent.get(source, 0)
                if had != sent:
                    self.fail(member, f"{had} of the {sent} casts of {source:x}")


class NoCreation(Checker):
    """I5: what is delivered was cast by that sender, with these bytes."""

    id = "I5"

    def deliver(self, member: int, key: Key, name: Name, body: bytes, holders: int | None) -> None:
        cast = self.facts.casts.get(name)
        if cast is None or cast.body != body:
            self.fail(member, f"{body!r:.40} at {key}, which {name[0]:x} never cast")


class SenderOrder(Checker):
    """I6: a sender's casts come in the order in which it cast them, without a gap."""

    id = "I6"

    def deliver(self, member: int, key: Key, name: Name, body: bytes, holders: int | None) -> None:
        had = self.facts.seen[member].sources.get(name[0], 0)
        if name[1] != had + 1:
            self.fail(member, f"cast {name[1]} of {name[0]:x} at {key}, after its cast {had}")


class HappensAfter(Checker):
    """I7: what was cast after its sender had seen something comes after that in the order."""

    id = "I7"

    def deliver(self, member: int, key: Key, name: Name, body: bytes, holders: int | None) -> None:
        view = self.facts.seen[member].view
        lineage, place = self.facts.casts[name].after
        if view is not None and lineage == view.lineage and key <= place:
            self.fail(member, f"{key}, and its sender had seen {place} when it cast it")
