"""The processes of a run: who they are, what they were told, what they say of their groups."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orcalike.launch import processes
from orcalike.launch.groups import Groups, Who
from orcalike.launch.job import Job
from orcalike.launch.processes import Child


class Crew:
    """The ranks and the witness that run now, by `Who`: a rank, or None for the witness."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.ranks: dict[int, Child] = {}
        self.witness: Child | None = None
        self.groups = Groups()
        self._ended: list[int] = []
        self._cuts: dict[Who, str] = {}

    def everybody(self) -> list[tuple[Who, Child]]:
        """All that run now, the witness last."""
        ranks: list[tuple[Who, Child]] = list(self.ranks.items())
        return ranks + ([(None, self.witness)] if self.witness else [])

    def find(self, who: Who) -> Child | None:
        """The process, if it runs."""
        return self.witness if who is None else self.ranks.get(who)

    def start(self, who: Who, restarts: int = 0) -> Child:
        """Start a rank or the witness, and tell it what it has missed.

        Raises OSError where the system has no room for it.
        """
        formed = self.groups.formed if restarts else ()
        if who is None:
            child = self.witness = processes.start_witness(self.job, restarts, formed)
        else:
            child = self.ranks[who] = processes.start_rank(self.job, who, restarts, formed)
        for rank in self._ended:
            child.tell(f"ended {rank}")
        for incarnation in sorted(self.groups.died):
            child.tell(f"died {incarnation}")
        if who in self._cuts:
            child.tell(self._cuts[who])
        return child

    def remove(self, who: Who) -> Child:
        """Take out a process that has ended, and tell the others whose end that is (H13)."""
        child = self.find(who)
        assert child is not None
        for _ in range(16):  # it is dead, but what it has forked may hold the line and write on it
            if not self.hear(who, child):
                break
        if who is None:
            self.witness = None
        else:
            del self.ranks[who]
        for incarnation in sorted(self.groups.end(who)):
            self._tell_all(f"died {incarnation}")
        return child

    def give_up(self, rank: int) -> None:
        """Tell all that a rank has ended which is not started again."""
        self._ended.append(rank)
        self._tell_all(f"ended {rank}")

    def hear(self, who: Who, child: Child) -> bool:
        """Take what a process says of its groups; says whether more may come."""
        lines = child.hear()
        for line in lines or ():
            self.groups.hear(who, line)
        return lines is not None

    def separate(self, parts: Sequence[Collection[Who]]) -> None:
        """Cut the connections between the parts; who is in none of them keeps all of its own."""
        self._cuts = {}
        for part in parts:
            others = [who for other in parts if other is not part for who in other]
            for who in part:
                names = sorted("w" if other is None else str(other) for other in others)
                self._cuts[who] = f"cut {','.join(names)}"
        for who, child in self.everybody():
            child.tell(self._cuts.get(who, "heal"))

    def heal(self) -> bool:
        """Let all reach each other again; says whether they could not."""
        was_cut, self._cuts = bool(self._cuts), {}
        self._tell_all("heal")
        return was_cut

    def _tell_all(self, line: str) -> None:
        for _, child in self.everybody():
            child.tell(line)
