"""What the processes of a run say of their groups, and what follows from it.

They say it by the lines of `orcalike.control`. From them the launcher knows who orders, which
groups have been made, which members have certainly died, and whether a group is blocked for good:
whoever is left waits for members whose processes have ended. Nobody can take such a member's
place, a process that is started again neither: what a member knew died with it (H1, H9).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote

#: A process of the run: a rank, or None for the witness.
Who = int | None

#: A line longer than this is no line of ours.
LINE_MAX = 1 << 16
#: More groups, or members of one process, than this are not believed.
NAMES_MAX = 4096

DEFAULT_NAME = "default"


def name_of(who: Who) -> str:
    """`rank 2`, or `the witness`."""
    return "the witness" if who is None else f"rank {who}"


def names_of(whom: Collection[Who]) -> str:
    """`rank 0, rank 2 and the witness`."""
    ranks = sorted(who for who in whom if who is not None)
    names = [name_of(who) for who in ranks] + [name_of(None)] * (None in whom)
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


@dataclass(frozen=True, slots=True)
class Place:
    """How one process stands in one group, by its own word."""

    state: Literal["joining", "in", "blocked", "lacking"]
    #: Where it is blocked: the members that it misses, by incarnation.
    missing: tuple[tuple[int, Who], ...] = ()
    rule: str = ""
    #: Where it lacks members: how many with replicas it waits for.
    needed: int = 0


@dataclass(slots=True)
class Group:
    """One group, as its processes see it."""

    places: dict[Who, Place] = field(default_factory=dict)
    #: Whether a view was ever installed: it is not made a second time.
    formed: bool = False
    #: Who said last that it orders; of no meaning where `ordered` is false.
    sequencer: Who = None
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Loss:
    """A group that is blocked for good."""

    group: str
    #: Whom it misses; nobody where nobody is left who was in it.
    missed: frozenset[Who]
    rule: str
    #: How many members with replicas there must be; 0 where the number is not the reason.
    needed: int = 0


class Groups:
    """All groups of a run."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._incarnations: dict[Who, set[int]] = {}
        #: Members whose processes have ended.
        self.died: set[int] = set()

    def hear(self, who: Who, line: str) -> None:
        """Take a line that a process said; what is none of ours is let pass."""
        match line.split(maxsplit=3):
            case ["joining", name, incarnation] if incarnation.isdigit():
                self._place(who, name, Place("joining"))
                mine = self._incarnations.setdefault(who, set())
                if len(mine) < NAMES_MAX:
                    mine.add(int(incarnation))
            case [("unblocked" | "sequencer") as what, name]:
                self._place(who, name, Place("in"))
                if what == "sequencer" and (group := self._groups.get(unquote(name))):
                    group.sequencer, group.ordered = who, True
            case ["blocked", name, members, *rule]:
                missing = _parse_members(members)
                if missing is not None:
                    self._place(who, name, Place("blocked", missing, "".join(rule)))
            case ["lacks", name, needed, *rule] if needed.isdigit():
                self._place(who, name, Place("lacking", (), "".join(rule), int(needed)))

    def _place(self, who: Who, name: str, place: Place) -> None:
        name = unquote(name)
        if name not in self._groups and len(self._groups) >= NAMES_MAX:
            return
        group = self._groups.setdefault(name, Group())
        group.places[who] = place
        group.formed = group.formed or place.state != "joining"

    def end(self, who: Who) -> set[int]:
        """A process has ended; returns the members that died with it."""
        for group in self._groups.values():
            group.places.pop(who, None)
            if group.sequencer == who:
                group.ordered = False
        died = self._incarnations.pop(who, set())
        self.died |= died
        return died

    @property
    def formed(self) -> list[str]:
        """The names of the groups that were made."""
        return sorted(name for name, group in self._groups.items() if group.formed)

    def sequencers(self) -> list[Who]:
        """Who orders: in the program's own group, or, where it has none, in the others."""
        own = self._groups.get(DEFAULT_NAME)
        groups = [own] if own else self._groups.values()
        return [group.sequencer for group in groups if group.ordered]

    def loss(self, ranks: Collection[int], coming: int = 0) -> Loss | None:
        """The first group that is blocked for good, with these ranks running, and so many to come.

        So it is where each of them waits for it, and no process can let them go on: none is in a
        view of it, and all members that are missed have died; or those that are in a view wait for
        more members than there are ranks.
        """
        for name, group in self._groups.items():
            stuck = ranks and all(rank in group.places for rank in ranks)
            if stuck and group.formed and all(map(self._waits, group.places.values())):
                blocked = [place for place in group.places.values() if place.state == "blocked"]
                missed = frozenset(who for place in blocked for _, who in place.missing)
                return Loss(name, missed, blocked[0].rule if blocked else "")
            lacking = [place for place in group.places.values() if place.state == "lacking"]
            if not stuck or not lacking:
                continue
            needed = min(place.needed for place in lacking)
            waiting = all(
                group.places[rank].state == "lacking" or self._waits(group.places[rank])
                for rank in ranks
            )
            if waiting and len(ranks) + coming < needed:
                return Loss(name, frozenset(), lacking[0].rule, needed)
        return None

    def _waits(self, place: Place) -> bool:
        """Whether it waits, and for nobody who lives."""
        if place.state == "blocked":
            return bool(place.missing) and self.died.issuperset(i for i, _ in place.missing)
        return place.state == "joining"


def _parse_members(text: str) -> tuple[tuple[int, Who], ...] | None:
    """`12:0,34:w` as ((12, 0), (34, None)); None for what is not like that."""
    members: list[tuple[int, Who]] = []
    for member in () if text == "-" else text.split(","):
        incarnation, _, who = member.partition(":")
        if not incarnation.isdigit() or not (who == "w" or who.isdigit()):
            return None
        members.append((int(incarnation), None if who == "w" else int(who)))
    return tuple(members)
