"""What the processes of a run report of their groups, and what follows from it.

They report it by the lines of `launch_protocol.control_lines`. From them the launcher knows which member orders, which
groups have been made, which members have certainly died, and whether a group is blocked for good:
what is left of it waits for members whose processes have ended. No process can take such a member's
place, a process that is started again neither: what a member knew died with it (H1, H9).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Literal

from orcalike.launch_protocol.control_lines import (
    Blocked,
    Described,
    Hosts,
    Joining,
    Lacks,
    Leaving,
    Left,
    Role,
    Sequencer,
    SharedOrder,
    Unblocked,
    parse_for_launcher,
)
from orcalike.launch_protocol.deaths import Deaths
from orcalike.transport.record import Record
from orcalike.transport.wording import listed

#: More groups, or members of one process, than this are not believed.
NAMES_MAX = 4096

DEFAULT_NAME = "default"


def name_of(role: Role) -> str:
    """`rank 2`, or `the witness`."""
    return "the witness" if role is None else f"rank {role}"


def names_of(roles: Collection[Role]) -> str:
    """`rank 0, rank 2 and the witness`."""
    ranks = sorted(role for role in roles if role is not None)
    names = [name_of(role) for role in ranks] + [name_of(None)] * (None in roles)
    return listed(names)


class Place(Record):
    """How one process stands in one group, by its own word."""

    state: Literal["joining", "in", "blocked", "lacking", "leaving"]
    #: Where it is blocked: the members that it misses, by incarnation.
    missing: tuple[tuple[int, Role], ...] = ()
    rule: str = ""
    #: Where it lacks members: how many with replicas it waits for.
    needed: int = 0
    #: Of the member that joins.
    incarnation: int = 0


@dataclass(slots=True)
class Group:
    """One group, as its processes see it."""

    places: dict[Role, Place] = field(default_factory=dict)
    #: Whether a view was ever installed: it is not made a second time.
    formed: bool = False
    #: The last member that reported that it orders; of no meaning if `ordered` is false.
    sequencer: Role = None
    ordered: bool = False
    #: Whether the order is in shared memory, so that no member is the sequencer.
    shares_memory: bool = False
    #: Whether all that were in it have left it, and none has ended in it.
    is_left: bool = False
    #: How many processes of each rank's own are in it, or are to be.
    hosted: dict[Role, int] = field(default_factory=dict)


class Loss(Record):
    """A group that is blocked for good, as far as its members have said."""

    group: str
    #: The members that it misses; empty if all that were in it have ended, or all that were missed.
    missed: frozenset[Role]
    rule: str
    #: How many members with replicas there must be; 0 if the number is not the reason.
    needed: int = 0
    #: The processes that wait for it.
    waiting: frozenset[Role] = frozenset()


class Groups:
    """All groups of a run."""

    def __init__(self) -> None:
        self.by_name: dict[str, Group] = {}
        self.on_described: Callable[[Role, Described], None] = lambda role, described: None
        """Called with how a group stands at a process, which was asked for it."""
        self._incarnations: dict[Role, set[int]] = {}
        #: Members whose processes have ended.
        self.died = Deaths()

    def receive(self, role: Role, line: str) -> None:
        """Take a line of a process; what is none of ours is let pass."""
        match parse_for_launcher(line):
            case Joining(group, incarnation):
                self._place(role, group, Place("joining", incarnation=incarnation))
                mine = self._incarnations.setdefault(role, set())
                if len(mine) < NAMES_MAX:
                    mine.add(incarnation)
            case Leaving(group):
                if (found := self.by_name.get(group)) and role in found.places:
                    found.places[role] = Place("leaving")
            case Left(group):
                self._leave(role, group)
            case Unblocked(group):
                self._place(role, group, Place("in"))
            case Sequencer(group):
                self._place(role, group, Place("in"))
                if found := self.by_name.get(group):
                    found.sequencer, found.ordered, found.shares_memory = role, True, False
            case SharedOrder(group):
                self._place(role, group, Place("in"))
                if found := self.by_name.get(group):
                    found.shares_memory, found.ordered = True, False
            case Blocked(group, missing, rule):
                self._place(role, group, Place("blocked", missing, rule))
            case Lacks(group, needed, rule):
                self._place(role, group, Place("lacking", (), rule, needed))
            case Hosts(group, number):
                if found := self.by_name.get(group):
                    found.hosted[role] = number
            case Described() as described:
                self.on_described(role, described)

    def _place(self, role: Role, name: str, place: Place) -> None:
        if name not in self.by_name and len(self.by_name) >= NAMES_MAX:
            return
        group = self.by_name.setdefault(name, Group())
        group.formed = group.formed or place.state != "joining"
        group.is_left = False
        before = group.places.get(role)
        if before is None or before.state != "leaving" or place.state == "joining":
            group.places[role] = place  # one that leaves does so whatever becomes of the group

    def _leave(self, role: Role, name: str) -> None:
        """A process is in that group no more: it is not asked for it, and orders there no more."""
        if (group := self.by_name.get(name)) is None or group.places.pop(role, None) is None:
            return
        group.hosted.pop(role, None)
        group.is_left = not group.places
        if group.sequencer == role:
            group.ordered = False

    def end(self, role: Role) -> set[int]:
        """A process has ended; returns the members that died with it."""
        for group in self.by_name.values():
            group.places.pop(role, None)
            group.hosted.pop(role, None)  # the kernel ends them with it
            if group.sequencer == role:
                group.ordered = False
        died = self._incarnations.pop(role, set())
        for incarnation in sorted(died):
            self.died.add(incarnation)
        return died

    def end_started(self, incarnation: int) -> bool:
        """What a process has started was this member, and has ended; False if the member is a process of the run itself."""
        if any(incarnation in mine for mine in self._incarnations.values()):
            return False
        self.died.add(incarnation)
        return True

    @property
    def formed(self) -> list[str]:
        """The names of the groups that were made."""
        return sorted(name for name, group in self.by_name.items() if group.formed)

    def wanted_by(self, role: Role) -> list[tuple[str, int]]:
        """The groups that no process has made and this one waits for, and as which member it does."""
        return [
            (name, group.places[role].incarnation)
            for name, group in self.by_name.items()
            if not group.formed and role in group.places
        ]

    def sequencers(self) -> list[Role]:
        """The members that order: in the program's own group, or, if it has none, in the others."""
        own = self.by_name.get(DEFAULT_NAME)
        groups = [own] if own else self.by_name.values()
        return [group.sequencer for group in groups if group.ordered]

    def loss(self, ranks: Collection[int], coming: int = 0) -> Loss | None:
        """The first group that is blocked for good, with these ranks running, and so many to come.

        So it is if each of them waits for it, and no process can let them go on: none is in a
        view of it, and all members that are missed have died; or those that are in a view wait for
        more members than there are ranks and processes of these. One that leaves it waits for none: it is out of it soon.
        """
        for name, group in self.by_name.items():
            stuck = ranks and all(rank in group.places for rank in ranks)
            there = frozenset(group.places)
            if stuck and group.formed and all(map(self._waits, group.places.values())):
                blocked = [place for place in group.places.values() if place.state == "blocked"]
                missed = frozenset(role for place in blocked for _, role in place.missing)
                return Loss(name, missed, blocked[0].rule if blocked else "", waiting=there)
            lacking = [place for place in group.places.values() if place.state == "lacking"]
            if not stuck or not lacking:
                continue
            needed = min(place.needed for place in lacking)
            waiting = all(
                group.places[rank].state == "lacking" or self._waits(group.places[rank])
                for rank in ranks
            )
            if waiting and len(ranks) + coming + sum(group.hosted.values()) < needed:
                return Loss(name, frozenset(), lacking[0].rule, needed, there)
        return None

    def _waits(self, place: Place) -> bool:
        """Whether it waits, and for no process that lives."""
        if place.state == "blocked":
            # None is missed if the member knows itself that all of them have ended.
            return all(incarnation in self.died for incarnation, _ in place.missing)
        return place.state == "joining"
