"""All executions of a small program under the memory model of C11, as RC11 repairs it.

Lahav, Vafeiadis, Kang, Hur and Dreyer, "Repairing sequential consistency in C/C++11" (2017), without
non-atomic accesses: those of the order in shared memory are taken as relaxed. Each thread is a list of
steps; a program of a dozen steps has some thousands of candidates, all of which are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product

RELAXED, ACQUIRE, RELEASE, BOTH, ORDERED = "relaxed", "acquire", "release", "both", "seq_cst"
ACQUIRES = {ACQUIRE, BOTH, ORDERED}
RELEASES = {RELEASE, BOTH, ORDERED}

Pairs = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Step:
    """Of a thread: a load, a store, a swap (both at once), or a fence."""

    kind: str
    order: str
    place: str = ""
    value: int = 0
    """That is stored."""
    reads: str = ""
    """The name of what a load or a swap finds."""


def load(place: str, order: str, reads: str) -> Step:
    """Load a place; what is found has a name."""
    return Step("load", order, place, 0, reads)


def store(place: str, value: int, order: str) -> Step:
    """Store a value."""
    return Step("store", order, place, value)


def swap(place: str, value: int, order: str = ORDERED, reads: str = "") -> Step:
    """Read and write a place at once."""
    return Step("swap", order, place, value, reads)


def fence(order: str = ORDERED) -> Step:
    """A fence."""
    return Step("fence", order)


@dataclass(frozen=True)
class Event:
    """A read, a write, or a fence."""

    number: int
    thread: int
    kind: str
    order: str
    place: str
    value: int
    reads: str


def compose(first: Pairs, second: Pairs) -> Pairs:
    """Of two relations: the pairs that go by the one and then the other."""
    after: dict[int, set[int]] = {}
    for left, right in second:
        after.setdefault(left, set()).add(right)
    return frozenset((left, end) for left, right in first for end in after.get(right, ()))


def closed(pairs: Pairs) -> Pairs:
    """The transitive closure."""
    while True:
        more = pairs | compose(pairs, pairs)
        if more == pairs:
            return pairs
        pairs = more


def is_cyclic(pairs: Pairs) -> bool:
    """Whether some step comes before itself."""
    return any(left == right for left, right in closed(pairs))


class Program:
    """Threads over places that are 0 at first."""

    def __init__(self, *threads: list[Step]) -> None:
        """Make the events; the swaps are two each."""
        self.events: list[Event] = []
        self.swaps: set[tuple[int, int]] = set()
        places = sorted({step.place for thread in threads for step in thread if step.place})
        for place in places:
            self._add(-1, Step("store", RELAXED, place), "write")
        before: set[tuple[int, int]] = set()
        for number, thread in enumerate(threads):
            own: list[int] = []
            for step in thread:
                kinds = {"load": ["read"], "store": ["write"], "swap": ["read", "write"]}
                made = [self._add(number, step, kind) for kind in kinds.get(step.kind, ["fence"])]
                if len(made) == 2:
                    self.swaps.add((made[0], made[1]))
                before |= {(old, new) for new in made for old in own}
                before |= {(made[0], made[-1])} if len(made) == 2 else set()
                own += made
        first = range(len(places))
        before |= {(i, event.number) for i in first for event in self.events[len(places) :]}
        self.before: Pairs = frozenset(before)

    def _add(self, thread: int, step: Step, kind: str) -> int:
        reads = step.reads if kind == "read" else ""
        event = Event(len(self.events), thread, kind, step.order, step.place, step.value, reads)
        self.events.append(event)
        return event.number

    def outcomes(self) -> set[tuple[tuple[str, int], ...]]:
        """What the named loads can find, together."""
        return {
            tuple(
                sorted(
                    (e.reads, self.events[source[e.number]].value) for e in self._reads() if e.reads
                )
            )
            for source, later in self._candidates()
            if self._is_allowed(source, later)
        }

    def _reads(self) -> list[Event]:
        return [event for event in self.events if event.kind == "read"]

    def _candidates(self) -> Iterator[tuple[dict[int, int], Pairs]]:
        """Each choice of what each read finds, and of the order of the writes of each place."""
        writes: dict[str, list[int]] = {}
        for event in self.events:
            if event.kind == "write":
                writes.setdefault(event.place, []).append(event.number)
        orders = [
            [(first, *rest) for rest in permutations(others)] for first, *others in writes.values()
        ]
        reads = self._reads()
        for chosen in product(*orders):
            later = frozenset(
                (order[i], order[j])
                for order in chosen
                for i in range(len(order))
                for j in range(i + 1, len(order))
            )
            for sources in product(*(writes[read.place] for read in reads)):
                found = zip(reads, sources, strict=True)
                yield {read.number: source for read, source in found}, later

    def _is_allowed(self, source: dict[int, int], later: Pairs) -> bool:
        """Whether an execution keeps coherence, atomicity, and the axiom of sequential consistency."""
        finds: Pairs = frozenset((write, read) for read, write in source.items())
        misses: Pairs = frozenset(
            (read, other) for read, write in source.items() for one, other in later if one == write
        ) - frozenset((number, number) for number in source)
        if any(
            (read, other) in misses and (other, write) in later
            for read, write in self.swaps
            for other in range(len(self.events))
        ):
            return False
        if is_cyclic(self.before | finds):
            return False
        happens = closed(self.before | self._synchronizes(finds))
        seen = closed(finds | later | misses)
        if any(left == right for left, right in happens | compose(happens, seen)):
            return False
        return not is_cyclic(self._ordered(happens, seen, later, misses))

    def _synchronizes(self, finds: Pairs) -> Pairs:
        """From a release, or a write after a release fence, to what acquires it."""
        events = self.events
        chain: Pairs = compose(finds, frozenset(self.swaps))
        from_write = closed(chain) | frozenset((e.number, e.number) for e in events)
        reached = compose(from_write, finds)
        pairs = set()
        for write, read in reached:
            if events[write].kind != "write":
                continue
            starts = [write] if events[write].order in RELEASES else []
            starts += self._fences(write, RELEASES, is_before=True)
            ends = [read] if events[read].order in ACQUIRES else []
            ends += self._fences(read, ACQUIRES, is_before=False)
            pairs |= {(start, end) for start in starts for end in ends}
        return frozenset(pairs)

    def _fences(self, event: int, orders: set[str], is_before: bool) -> list[int]:
        return [
            each.number
            for each in self.events
            if each.kind == "fence"
            and each.order in orders
            and ((each.number, event) if is_before else (event, each.number)) in self.before
        ]

    def _ordered(self, happens: Pairs, seen: Pairs, later: Pairs, misses: Pairs) -> Pairs:
        """The relation that a total order of all that is seq_cst must extend."""
        events = self.events
        places = {event.number: event.place for event in events}
        elsewhere: Pairs = frozenset(
            (one, other) for one, other in self.before if places[one] != places[other]
        )
        same: Pairs = frozenset(
            (one, other) for one, other in happens if places[one] and places[one] == places[other]
        )
        between = compose(compose(elsewhere, happens), elsewhere)
        base = self.before | between | same | later | misses
        own: Pairs = frozenset((e.number, e.number) for e in events if e.order == ORDERED)
        fences: Pairs = frozenset(
            (e.number, e.number) for e in events if e.order == ORDERED and e.kind == "fence"
        )
        start = own | compose(fences, happens)
        end = own | compose(happens, fences)
        ordered = compose(compose(start, base), end)
        through = happens | compose(compose(happens, seen), happens)
        return ordered | compose(compose(fences, through), fences)
