"""I8 to I10: what was acknowledged, or readable anywhere, is held by enough members and not lost.

With degree 0 nothing of this is promised (H4), unless the order is in memory that members share.
"""

from __future__ import annotations

from orcalike.simulator.checkers.facts import Checker, Facts, Installed, Key, Name


class _Held(Checker):
    """A cast of degree r has r + 1 holders, and each member that enters a later view holds it."""

    what = ""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._last: dict[int, list[tuple[int, int]]] = {}
        """Lineage -> (number of the view, largest seqno there), both growing."""

    def concerns(self, member: int, name: Name) -> bool:
        """Whether this delivery counts."""
        raise NotImplementedError

    def deliver(self, member: int, key: Key, name: Name, body: bytes, holders: int | None) -> None:
        degree = self.facts.casts[name].degree
        view = self.facts.seen[member].view
        assert view is not None
        if not self.facts.is_kept(name, view) or not self.concerns(member, name):
            return
        needed = self.facts.degree_in(degree, view, name[0]) + 1
        if holders is not None and holders < needed:
            self.fail(member, f"{key} is {self.what}, and {holders} hold it, not {needed}")
        last = self._last.setdefault(view.lineage, [])
        if last and last[-1][0] == view.number:
            last[-1] = view.number, max(last[-1][1], key[0])
        elif not last or last[-1][0] < view.number:
            last.append((view.number, key[0]))

    def view(self, member: int, view: Installed, start: int | None, held: int | None) -> None:
        if held is None:
            return
        for number, seqno in reversed(self._last.get(view.lineage, ())):
            if number < view.number and held <= seqno:
                self.fail(
                    member,
                    f"it enters view {view.number} without {held}; "
                    f"{seqno} was {self.what} in view {number}",
                )


class Durability(_Held):
    """I8: what its sender saw delivered has r + 1 holders, and is in each later view."""

    id = "I8"
    what = "acknowledged"

    def concerns(self, member: int, name: Name) -> bool:
        return member == name[0]


class NoDirtyRead(_Held):
    """I10: what any member saw delivered has r + 1 holders, and is in each later view."""

    id = "I10"
    what = "readable"

    def concerns(self, member: int, name: Name) -> bool:
        return member != name[0]


class NoSilentLoss(Checker):
    """I9: an acknowledged cast that is kept is there in the end, or the lineage is another."""

    id = "I9"

    def finish(self, live: list[int], blocked: bool) -> None:
        for member, seen, view in self.facts.served_by(live, blocked):
            for (source, number), (key, before) in self.facts.acked.items():
                kept = self.facts.is_kept((source, number), before)
                if kept and before.lineage == view.lineage and number > seen.sources.get(source, 0):
                    self.fail(
                        member, f"it lacks cast {number} of {source:x}, acknowledged at {key}"
                    )
