"""Each peer in interleaved rounds with orcalike: a write that waits, writes that do not, a read.

Calls that wait are pinned to one core, with the servers; writes that do not wait have all cores. A ratio
says how many times faster orcalike is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from orcalike.bench import member
from orcalike.bench.harness import Program, Spread, interleave, ratios
from orcalike.bench.peers.answers import MEMBERS
from orcalike.bench.peers.catalogue import Counts, Peer
from orcalike.bench.table import Bar, Row, compare, scaled

AHEAD = Bar(1, at_least=True)
FAR_AHEAD = Bar(1, 10, at_least=True)


@dataclass(frozen=True)
class Effort:
    """How much of orcalike is measured, and how often both are."""

    rounds: int
    ours: Counts
    quick: bool = False

    def of(self, peer: Peer) -> Counts:
        """What the peer does in one round."""
        return peer.counts.quick() if self.quick else peer.counts


FULL = Effort(rounds=7, ours=Counts(waits=2000, burst=200_000, reads=1_000_000))
QUICK = Effort(rounds=2, ours=Counts(waits=100, burst=5_000, reads=20_000), quick=True)


class Beside:
    """A group of orcalike beside one peer; both run while both are measured."""

    def __init__(self, peer: Peer, effort: Effort, stack: ExitStack) -> None:
        self.peer = peer
        self.effort = effort
        self.cores = os.sched_getaffinity(0)
        run = [sys.executable, "-m", "orcalike", "run", "--quiet", "--no-prefix"]
        script = [str(member.__file__), "--idle"]  # as the peers' other clients are
        self.ours = stack.enter_context(Program([*run, "-n", str(MEMBERS), *script]))
        self.single = stack.enter_context(Program([*run, "-n", "1", *script]))
        self.theirs = stack.enter_context(Program(peer.command))
        self.theirs.name = peer.title
        self.ours.ask("wait 1")  # they are up
        self.single.ask("wait 1")
        self.theirs.ask("read 1")

    def rows(self) -> list[Row]:
        """What of it there is."""
        counts = self.effort.of(self.peer)
        self.run_on({max(self.cores)})
        rows = self.waits(counts.waits) if counts.waits else []
        reads = [self.read(counts.reads)] if counts.reads else []
        self.run_on(self.cores)
        rows += [self.burst(counts.burst)] if counts.burst else []
        return rows + reads

    def run_on(self, cores: set[int]) -> None:
        """Both."""
        self.ours.run_on(cores)
        self.single.run_on(cores)
        self.theirs.run_on(cores)

    def waits(self, count: int) -> list[Row]:
        """Microseconds of a write that one member waits for.

        If the peer keeps one copy, in a server, also beside a group that has its one member
        and the sequencer: with three all on one core, three replicas are written one after the other.
        """
        rows = [self.wait(self.ours, MEMBERS, count)]
        return rows if self.peer.local_reads else [*rows, self.wait(self.single, 1, count)]

    def wait(self, program: Program, members: int, count: int) -> Row:
        """The same with one of the groups."""
        ours, theirs = self.samples(program, f"wait {self.effort.ours.waits}", f"wait {count}")
        return self.times(
            "write that waits", members, "us", scaled(ours, 1e6), scaled(theirs, 1e6), AHEAD
        )

    def read(self, count: int) -> Row:
        """Nanoseconds of a read. If both are a method call, there is no bar: none is ahead."""
        ours, theirs = self.samples(
            self.ours, f"shared_read {self.effort.ours.reads}", f"read {count}"
        )
        bar = None if self.peer.local_reads else AHEAD
        return self.times("read", MEMBERS, "ns", scaled(ours, 1e9), scaled(theirs, 1e9), bar)

    def burst(self, count: int) -> Row:
        """Writes a second, of all members together."""
        ours, theirs = (
            [1 / seconds for seconds in taken]
            for taken in self.samples(self.ours, f"int {self.effort.ours.burst}", f"burst {count}")
        )
        what = "writes, no wait"
        return compare(what, MEMBERS, "/s", ours, self.peer.title, theirs, FAR_AHEAD)

    def samples(self, program: Program, ours: str, theirs: str) -> Sequence[list[float]]:
        """Those of a group and of the peer, for these lines."""
        taken: Mapping[str, list[float]] = interleave(
            self.effort.rounds,
            {
                "ours": lambda: float(program.ask(ours)),
                "theirs": lambda: float(self.theirs.ask(theirs)),
            },
        )
        return taken["ours"], taken["theirs"]

    def times(
        self, what: str, members: int, unit: str, ours: list[float], theirs: list[float],
        bar: Bar | None,
    ) -> Row:  # fmt: skip
        """A row of times: the ratio is the other way round, so that more is always better."""
        row = compare(what, members, unit, ours, self.peer.title, theirs, bar)
        return replace(row, ratio=Spread.of(ratios(theirs, ours)))


def measure(peers: Sequence[Peer], effort: Effort) -> list[Row]:
    """All rows. One peer runs at a time; says in a line each what is skipped, and why."""
    rows: list[Row] = []
    said = set()
    for peer in peers:
        if (lacks := peer.lacks()) is None:
            with ExitStack() as stack:
                rows += Beside(peer, effort, stack).rows()
        elif peer.name not in said:
            said.add(peer.name)
            print(f"skipped {peer.name}: {lacks}", flush=True)
    return rows
