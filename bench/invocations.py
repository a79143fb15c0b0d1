"""Measures invocations: reads, writes that wait, writes that do not, on 1 to 4 members.

Every figure stands beside a limit that is measured in the same run, in interleaved rounds: the same method of
a plain class, a ping-pong in C or on uvloop by the same way, the plain Python call of the operation.
Calls that wait are pinned to one core, as are their limits; others have all cores.
docs/performance.md says what each figure means.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from orcalike.bench.harness import OVER_SEQUENCER, Lacking, Program, interleave
from orcalike.bench.pingpong import FRAME, compiled
from orcalike.bench.table import Bar, Row, add_options, compare, report, scaled

HERE = Path(__file__).parent
EXAMPLES = """\
examples:
  python -m orcalike.bench.invocations                     the whole table; some minutes
  python -m orcalike.bench.invocations --quick             a look at all rows; the figures mean little
  python -m orcalike.bench.invocations --members 1 3       these sizes of group only
  python -m orcalike.bench.invocations --json now.json     with all samples, for a later comparison
"""


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    calls: int
    waits: int
    bursts: int  # of each member, in one round


FULL = Effort(rounds=9, calls=1_000_000, waits=3000, bursts=200_000)
BURST_BARS = {
    "int": Bar(6, 3),
    "str_int": Bar(0.4, 0.55, at_least=True),
    "uvloop": Bar(0.6, 0.85, at_least=True),
}

QUICK = Effort(rounds=2, calls=20_000, waits=500, bursts=5_000)

KINDS = frozenset({"reads", "waits", "bursts"})
"""What there is to measure."""


class Bench:
    """The programs of one size of group, and what is measured with them.

    Without the ping-pong there is no row beside C.
    """

    def __init__(
        self, members: int, effort: Effort, pingpong: Path | None, stack: ExitStack
    ) -> None:
        self.members = members
        self.effort = effort
        run = [sys.executable, "-m", "orcalike", "run", "--quiet", "--no-prefix", *OVER_SEQUENCER]
        member = [*run, "-n", str(members), str(HERE / "member.py")]
        limit = [str(members), str(FRAME)]
        self.threads = stack.enter_context(Program(member))
        self.loop = stack.enter_context(Program([*member, "--loop"]))
        self.c = stack.enter_context(Program([pingpong, *limit])) if pingpong else None
        self.echo = stack.enter_context(Program([sys.executable, HERE / "echo.py", *limit]))

    def rows(self, kinds: Collection[str]) -> list[Row]:
        """What is wanted of `KINDS` with this size of group."""
        cores = os.sched_getaffinity(0)
        members, limits = (self.threads, self.loop), [self.echo, *([self.c] if self.c else [])]
        programs = (*members, *limits)
        for program in programs:
            program.ask("wait 1" if program in members else 1)  # it is up
            program.run_on({max(cores)})
        rows = self.reads() if "reads" in kinds else []
        rows += self.waits() if "waits" in kinds else []
        for program in programs:
            program.run_on(cores)
        return rows + (self.bursts() if "bursts" in kinds else [])

    # Calls in one process.

    def reads(self) -> list[Row]:
        """What a shared class costs if no message is sent."""
        return [
            self.call("read, one attribute", "read", Bar(2.5, 1.9, extra=25, extra_aim=15)),
            self.call("read, body of 280 ns", "read_long", Bar(1.15, 1.05)),
            self.call("undecorated method, attribute", "plainly", Bar(1.15, 1.05)),
            *self.copies(),
        ]

    def copies(self) -> list[Row]:
        """What it costs to write and read an argument that is made of others."""
        kinds, beside = ("list", "dict"), "msgpack, both ways"
        what = "{} as an argument, written and read"
        return [self.call(what.format(kind), f"copy_{kind}", Bar(2, 1), beside) for kind in kinds]

    def call(self, what: str, name: str, bar: Bar, beside: str = "plain class") -> Row:
        """The same statement on a shared object and on a plain one."""
        samples = interleave(
            self.effort.rounds,
            {side: self.timed(f"{side}_{name}") for side in ("shared", "plain")},
        )
        ours, theirs = scaled(samples["shared"], 1e9), scaled(samples["plain"], 1e9)
        return compare(what, self.members, "ns", ours, beside, theirs, bar)

    def timed(self, kind: str) -> Callable[[], float]:
        """A round of rank 0 alone."""
        return lambda: float(self.threads.ask(f"{kind} {self.effort.calls}"))

    # Writes that wait.

    def waits(self) -> list[Row]:
        """A write from a thread and from a coroutine, beside the shortest way there and back."""
        count, c = self.effort.waits, self.c
        measures = {
            "thread": lambda: float(self.threads.ask(f"wait {count}")),
            "coroutine": lambda: float(self.loop.ask(f"wait {count}")),
            "echo": lambda: float(self.echo.ask(count)),
        }
        if c is not None:
            measures["c"] = lambda: float(c.ask(count))
        taken = {
            name: scaled(samples, 1e6)
            for name, samples in interleave(self.effort.rounds, measures).items()
        }
        n, checked = self.members, self.members in (1, 3)
        bars = (Bar(1.5, 1.15), Bar(1.4, 1.0)) if checked else (None, None)
        rows = []
        if c is not None:
            what = "write that waits, thread"
            rows.append(compare(what, n, "us", taken["thread"], "C", taken["c"], bars[0]))
        what, echo = "write that waits, coroutine", taken["echo"]
        rows.append(compare(what, n, "us", taken["coroutine"], "uvloop echo", echo, bars[1]))
        return rows

    # Writes that do not wait.

    def bursts(self) -> list[Row]:
        """Writes of all members at once: their core time, and how many a second."""
        kinds = ("int", "str_int", "list", "dict", "uvloop")
        costs: dict[str, list[float]] = {kind: [] for kind in kinds}
        samples = interleave(
            self.effort.rounds,
            {
                "add": self.timed("plain_add"),
                "put": self.timed("plain_put"),
                "int": lambda: self.burst(self.threads, "int", costs["int"]),
                "keep": self.timed("plain_keep"),
                "str_int": lambda: self.burst(self.threads, "str_int", costs["str_int"]),
                "list": lambda: self.burst(self.threads, "list", costs["list"]),
                "dict": lambda: self.burst(self.threads, "dict", costs["dict"]),
                "uvloop": lambda: self.burst(self.loop, "int", costs["uvloop"]),
            },
        )
        rates = {kind: [1 / seconds for seconds in samples[kind]] for kind in costs}
        core = {kind: scaled(cost[-self.effort.rounds :], 1e9) for kind, cost in costs.items()}
        plain = {name: scaled(samples[name], 1e9) for name in ("add", "put", "keep")}
        n, uvloop = self.members, rates["uvloop"]
        bars = BURST_BARS if n == 3 else {}
        return [
            self.cost("(int)", core["int"], plain["add"], rates["int"], bars.get("int")),
            self.cost("(str, int)", core["str_int"], plain["put"], rates["str_int"]),
            self.cost("(list)", core["list"], plain["keep"], rates["list"]),
            self.cost("(dict)", core["dict"], plain["keep"], rates["dict"]),
            self.cost("(int), uvloop", core["uvloop"], plain["add"], uvloop),
            compare(
                "rate of (str, int)", n, "/s", rates["str_int"], "(int)", rates["int"],
                bars.get("str_int"),
            ),
            compare("rate on uvloop", n, "/s", uvloop, "thread", rates["int"], bars.get("uvloop")),
        ]  # fmt: skip

    def burst(self, program: Program, kind: str, costs: list[float]) -> float:
        """Seconds of one write; to `costs` goes the core time of applying it at one member."""
        count = self.effort.bursts
        before = program.core_seconds()
        seconds = float(program.ask(f"{kind} {count}"))
        costs.append((program.core_seconds() - before) / (count * self.members**2))
        return seconds

    def cost(
        self,
        arguments: str,
        core: list[float],
        plain: list[float],
        rates: list[float],
        bar: Bar | None = None,
    ) -> Row:
        """Core time of all processes, the sequencer too, for each operation that a member applied."""
        what = f"write, no wait, {arguments}"
        return compare(what, self.members, "ns", core, "plain call", plain, bar, rates)


def measure(
    sizes: Sequence[int],
    effort: Effort,
    kinds: Collection[str] = KINDS,
    lacking: Callable[[str], None] | None = None,
) -> list[Row]:
    """All rows of `KINDS`. The programs of one size of group run at a time.

    Raises Lacking if there is no C compiler, or tells `lacking`, and leaves out what is beside C.
    """
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        pingpong = None
        try:
            pingpong = compiled(Path(folder)) if "waits" in kinds else None
        except Lacking as error:
            if lacking is None:
                raise
            lacking(f"nothing beside C: {error}")
        for members in sizes:
            first = members == sizes[0]
            with ExitStack() as stack:
                bench = Bench(members, effort, pingpong, stack)
                rows += bench.rows(kinds if first else set(kinds) - {"reads"})
    return rows


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, time_limit=900)
    parser.add_argument(
        "--members", type=int, nargs="+", default=[1, 2, 3, 4], metavar="N", help="sizes of groups"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    options = parse(arguments)
    effort = QUICK if options.quick else FULL
    return report("invocations", options, lambda: measure(options.members, effort))


if __name__ == "__main__":
    sys.exit(main())
