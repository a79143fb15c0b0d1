"""The monitor: tells every checker what happens in a group, and keeps the facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from orcalike.simulator.checkers import CHECKERS
from orcalike.simulator.checkers.facts import (
    Cast,
    Checker,
    Facts,
    Identity,
    Installed,
    Key,
    Name,
    Seen,
    number_of,
)


class Monitor:
    """All checkers over one group. Each call raises Violation if a promise is broken."""

    def __init__(
        self,
        least: int = 0,
        checkers: Iterable[type[Checker]] = CHECKERS,
    ) -> None:
        self.facts = Facts(least=least)
        self.checkers: list[Checker] = [cls(self.facts) for cls in checkers]
        self.delivered = 0
        self.observer: Callable[[int, object], None] | None = None
        """Called with what members see, before it is checked."""
        self._cast = self._with_call("cast")
        self._deliver = self._with_call("deliver")
        self._view = self._with_call("view")
        self._state = self._with_call("state")
        self._gauge = self._with_call("gauge")

    def _with_call(self, call: str) -> list[Checker]:
        """The checkers that do something about that."""
        return [
            each
            for each in self.checkers
            if getattr(type(each), call) is not getattr(Checker, call)
        ]

    def seen(self, member: int) -> Seen:
        """What that member has seen."""
        seen = self.facts.seen.get(member)
        if seen is None:
            seen = self.facts.seen[member] = Seen()
        return seen

    def cast(self, member: int, body: bytes, degree: int = 0) -> None:
        """`member` casts."""
        facts, seen = self.facts, self.seen(member)
        number = facts.sent[member] = facts.sent.get(member, 0) + 1
        lineage = seen.view.lineage if seen.view is not None else 0
        cast = Cast(member, number, body, degree, (lineage, seen.last))
        for checker in self._cast:
            checker.cast(cast)
        facts.casts[member, number] = cast

    def number(self, member: int, source: int, body: bytes) -> int:
        """Which cast of `source` it is that is delivered at `member`, by its body."""
        return number_of(body)

    def is_first(self, member: int, key: Key) -> bool:
        """Whether no member has delivered anything there."""
        view = self.facts.seen[member].view
        return view is None or (view.lineage, key) not in self.facts.placed

    def deliver(
        self, member: int, key: Key, source: int, body: bytes, holders: int | None = None
    ) -> None:
        """`body` of `source` is delivered at `member`; so many members hold it."""
        self.delivered += 1
        if self.observer is not None:
            self.observer(member, (source, body, key))
        facts, seen = self.facts, self.seen(member)
        name: Name = source, self.number(member, source, body)
        for checker in self._deliver:
            checker.deliver(member, key, name, body, holders)
        view = seen.view
        assert view is not None
        before = facts.placed.get((view.lineage, key))
        if before is None or before[1][1] <= view.number:
            facts.placed[view.lineage, key] = name, view.identity
        if facts.is_kept(name, view) and key > facts.pinned.get(view.identity, (0, 0)):
            facts.pinned[view.identity] = key
        if member == source and view.identity > facts.anew:
            # Else all others have left meanwhile, and a member that sees this late is out itself.
            facts.acked[name] = key, view
        seen.last = key
        seen.count += 1
        seen.sources[source] = name[1]

    def view(
        self, member: int, view: Installed, start: int | None = None, held: int | None = None
    ) -> None:
        """`view` is installed at `member`."""
        if self.observer is not None:
            self.observer(member, view)
        for checker in self._view:
            checker.view(member, view, start, held)
        facts, seen = self.facts, self.seen(member)
        seen.view, seen.count = view, 0
        facts.whole[view.identity, member] = view.whole
        if view.identity not in facts.views:
            facts.views[view.identity] = view
            facts.rivals.setdefault(view.identity[:2], []).append(view.identity)
            facts.latest[view.lineage] = max(view.number, facts.latest.get(view.lineage, 0))
        if view.ends_state:
            facts.acked.clear()
            facts.anew = max(facts.anew, view.identity)
        facts.installed.setdefault(view.identity, []).append(member)
        if start is not None and held is not None:
            facts.starts.setdefault(view.identity, start)
            facts.cuts.setdefault(view.identity, held)

    def state(self, member: int, view: Installed, digest: int) -> None:
        """The state of `member` at `view`, in one number."""
        for checker in self._state:
            checker.state(member, view, digest)

    def take_state(self, member: int, last: Key, sources: dict[int, int]) -> None:
        """`member` begins with the state of others."""
        seen = self.seen(member)
        seen.last, seen.sources = last, dict(sources)

    def promise(self, member: int, view: Identity) -> None:
        """`member` goes along with the end of a view."""
        self.facts.promised.setdefault(view, set()).add(member)

    def leave(self, member: int) -> None:
        """`member` asks to leave; so it goes along with that."""
        self.facts.leavers.add(member)
        view = self.seen(member).view
        if view is not None:
            self.promise(member, view.identity)

    def exit(self, member: int, why: str) -> None:
        """`member` is out of the group."""
        if self.observer is not None:
            self.observer(member, f"is out: {why}")
        for checker in self.checkers:
            checker.exit(member, why)
        self.seen(member).exited = why

    def die(self, member: int) -> None:
        """The process of `member` is dead."""
        self.seen(member).dead = True

    def gauge(self, member: int, packets: int, packets_max: int, size: int, size_max: int) -> None:
        """What `member` keeps that is not stable, and what it may keep."""
        for checker in self._gauge:
            checker.gauge(member, packets, packets_max, size, size_max)

    def finish(self, live: list[int], *, blocked: bool = False) -> None:
        """It is over; `live` are the members of the last view that run."""
        for checker in self.checkers:
            checker.finish(live, blocked)
