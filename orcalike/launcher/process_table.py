"""The processes of a run: which they are, what is reported to them, and what they report of their groups."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orcalike.launch_protocol.control_lines import (
    Cut,
    Died,
    Ended,
    Gone,
    Heal,
    Make,
    Role,
    ToProcess,
)
from orcalike.launch_protocol.deaths import DEATHS_MAX
from orcalike.launcher.child import Child, Exit
from orcalike.launcher.group_status import Groups
from orcalike.launcher.job import Job
from orcalike.launcher.placement import Placement


class ProcessTable:
    """The ranks and the witness that run now, by `Role`: a rank, or None for the witness."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.placement = Placement()
        self.ranks: dict[int, Child] = {}
        self.witness: Child | None = None
        self.groups = Groups()
        self.ended: list[int] = []
        """The ranks that have ended, and are not started again."""
        self._seen_to_end: set[int] = set()
        """Those of them that certainly have."""
        self.exits: dict[Role, tuple[Child, Exit]] = {}
        """The process that ended last of each, and how it did."""
        self._cuts: dict[Role, Cut] = {}
        self._died_at: dict[int, str] = {}
        """The host of each member whose process was seen to end, the last ones."""

    def children(self) -> list[tuple[Role, Child]]:
        """All that run now, the witness last."""
        ranks: list[tuple[Role, Child]] = list(self.ranks.items())
        return ranks + ([(None, self.witness)] if self.witness else [])

    def find(self, role: Role) -> Child | None:
        """The process, if it runs."""
        return self.witness if role is None else self.ranks.get(role)

    def start(self, role: Role, restarts: int = 0) -> Child:
        """Start a rank or the witness, and report to it what it has missed.

        Raises OSError if the system has no room for it.
        """
        formed = self.groups.formed if restarts else ()
        start = self.placement.start(role, restarts, formed)
        child = self.placement.host(role).start(start)
        if role is None:
            self.witness = child
        else:
            self.ranks[role] = child
        for rank in self.ended:
            child.send(Ended(rank))
        for incarnation, host in sorted(self._died_at.items()):
            if host == child.host:
                child.send(Died(incarnation))
        if role in self._cuts:
            child.send(self._cuts[role])
        return child

    def remove(self, role: Role, *, seen: bool = True) -> Child:
        """Take out a process that has ended, and report to the others whose end that is (H13).

        It is certain for processes on the same host, and if the end was `seen` there; for others the member
        is gone as far as is known.
        """
        child = self.find(role)
        assert child is not None
        if role is None:
            self.witness = None
        else:
            del self.ranks[role]
        for incarnation in sorted(self.groups.end(role)):
            self._report_end(incarnation, child.host, seen=seen)
        return child

    def end_started(self, incarnation: int, host: str) -> None:
        """A process that a rank has started was this member, and was seen to end on that host: it is reported likewise."""
        if self.groups.end_started(incarnation):
            self._report_end(incarnation, host, seen=True)

    def _report_end(self, incarnation: int, host: str, *, seen: bool) -> None:
        if seen:
            self._died_at[incarnation] = host
            if len(self._died_at) > DEATHS_MAX:
                del self._died_at[next(iter(self._died_at))]
        for _, other in self.children():
            certain = seen and other.host == host
            other.send(Died(incarnation) if certain else Gone(incarnation))

    def give_up(self, rank: int, *, seen: bool) -> None:
        """Tell all that a rank has ended which is not started again; `seen` if it certainly has."""
        self.ended.append(rank)
        if seen:
            self._seen_to_end.add(rank)
        self._send_all(Ended(rank))
        self._name_maker()

    def receive(self, role: Role, line: str) -> None:
        """A process reports something of its groups."""
        self.groups.receive(role, line)
        self._name_maker()

    def _name_maker(self) -> None:
        """Have the first rank that there is make the groups that rank 0 has not made, and never will (ADR-23).

        All that came before it have certainly ended, and whatever they had reported was read: a group that none of
        them has made has no members.
        """
        if self.job.options.sequencer != "rank" or 0 not in self._seen_to_end:
            return
        maker = min(set(range(self.job.options.nprocs)) - self._seen_to_end, default=0)
        if (child := self.ranks.get(maker)) is not None:
            for group, incarnation in self.groups.wanted_by(maker):
                child.send(Make(group, incarnation))

    def separate(self, parts: Sequence[Collection[Role]]) -> None:
        """Cut the connections between the parts; a process in none of them keeps all of its own."""
        self._cuts = {}
        for part in parts:
            others = [role for other in parts if other is not part for role in other]
            for role in part:
                self._cuts[role] = Cut(frozenset(others))
        for role, child in self.children():
            child.send(self._cuts.get(role, Heal()))

    def heal(self) -> bool:
        """Let all reach each other again; whether they could not before."""
        was_cut, self._cuts = bool(self._cuts), {}
        self._send_all(Heal())
        return was_cut

    def _send_all(self, report: ToProcess) -> None:
        for _, child in self.children():
            child.send(report)
