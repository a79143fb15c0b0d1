"""Measures groups whose order is in shared memory (RING), beside C, beside TOTAL and beside themselves.

All programs run the same members; only the stack differs. Calls that wait are pinned to one core, as are
their limits; others have all cores. docs/performance.md says what the figures mean.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from orcalike.bench.harness import OVER_SEQUENCER, Lacking, Program
from orcalike.bench.pingpong import FRAME, compiled
from orcalike.bench.resilience import Effort, Rounds
from orcalike.bench.table import Bar, Row, compare, run_script, scaled

HERE = Path(__file__).parent
OVER_RING = ("--stack", "PACK:XFER:RING:MBRSHIP:COM:unix")
EXAMPLES = """\
examples:
  python -m orcalike.bench.ring             all rows; about two minutes
  python -m orcalike.bench.ring --quick     a look at them; the figures mean little
"""


FULL = Effort(rounds=15, waits=3000, bursts=200_000, calls=1_000_000)
QUICK = Effort(rounds=2, waits=200, bursts=5_000, calls=20_000)
STARTS = 5
"""Groups that are started for the reads."""
RACES, QUICK_RACES = (5, 2000), (2, 100)
"""How many, and how long they last, ms."""


def start(stack: ExitStack, members: int, layers: Sequence[str], *arguments: str) -> Program:
    """A group of `member.py` over these layers."""
    command = [sys.executable, "-m", "orcalike", "run", "--quiet", "--no-prefix", *layers]
    program = Program([*command, "-n", str(members), str(HERE / "member.py"), *arguments])
    stack.enter_context(program).ask("wait 1")  # it is up
    return program


def micro(samples: Mapping[str, Sequence[float]], name: str) -> list[float]:
    """The samples of a program, in microseconds."""
    return scaled(samples[name], 1e6)


def waits(effort: Effort, pingpong: Path | None) -> list[Row]:
    """A write that waits, back to back, with 1, 3 and 8 members; from a coroutine; of the highest degree.

    The other members wait for nothing. By the mean their work is in the figure, as all share a core; by the
    median of single calls it is not. Of two degrees the objects are in one group: two processes differ by more.
    """
    with ExitStack() as stack:
        ours = {str(size): start(stack, size, OVER_RING, "--idle") for size in (1, 3, 8)}
        others = {
            "loop": start(stack, 3, OVER_RING, "--idle", "--loop"),
            "r = 2": start(stack, 3, OVER_RING, "--idle", "--held"),
        }
        c: dict[str, Program] = {}
        if pingpong is not None:
            for size in (1, 3):
                limit = Program([pingpong, str(size), str(FRAME)])
                c[f"c {size}"] = stack.enter_context(limit)
        rounds = Rounds(3, effort, ours | others | c)
        means = rounds.each(
            dict.fromkeys(ours, f"wait {effort.waits}") | dict.fromkeys(c, str(effort.waits))
        )
        singles = rounds.each(dict.fromkeys(ours | others, f"single:0 {effort.waits}"))
        one_group = Rounds(3, effort, dict.fromkeys(("r = 0", "r = 2"), others["r = 2"]))
        degrees = one_group.each(
            {"r = 0": f"single:0 {effort.waits}", "r = 2": f"held {effort.waits}"}
        )
    rows = []
    for size in (1, 3):
        if c:
            row = micro(means, str(size)), "C", micro(means, f"c {size}"), Bar(0.20, 0.06)
            rows.append(compare("write that waits, RING", size, "us", *row))
    one, three = micro(singles, "1"), micro(singles, "3")
    return [
        *rows,
        compare(
            "write that waits, RING", 8, "us", micro(means, "8"), "1 member", micro(means, "1")
        ),
        compare(
            "write that waits, RING, median", 8, "us", micro(singles, "8"),
            "1 member", one, Bar(2, 1.2),
        ),
        compare(
            "write that waits, RING, coroutine, median", 3, "us", micro(singles, "loop"),
            "thread", three, Bar(1.6, 1.3),
        ),
        compare(
            "write that waits, RING, r = 2, median", 3, "us", micro(degrees, "r = 2"),
            "r = 0", micro(degrees, "r = 0"), Bar(1.02, 1.0),
        ),
    ]  # fmt: skip


def rested(effort: Effort) -> list[Row]:
    """A write after a time in which all members have slept, beside the same over TOTAL; the medians of single calls.

    All wait for a guard of another object, or for nothing. With a freshness of 0 they are woken by each write; else they see it a
    little later.
    """
    rows = []
    for more, bar, options in (
        (" and woken", Bar(0.5, 0.3), ("--freshness=0",)),
        (", waiting for another object", None, ()),
        ("", Bar(0.15, 0.06), ("--idle",)),
    ):
        with ExitStack() as stack:
            programs = {
                "RING": start(stack, 3, OVER_RING, *options),
                "TOTAL": start(stack, 3, OVER_SEQUENCER, *options),
            }
            rounds = Rounds(3, effort, programs)
            for what, rest, limit in (("all asleep", 300, bar), ("5 ms asleep", 5000, None)):
                asked = f"single:{rest} {max(effort.waits // 10, 20)}"
                samples = rounds.each(dict.fromkeys(programs, asked))
                row = micro(samples, "RING"), "TOTAL", micro(samples, "TOTAL"), limit
                rows.append(compare(f"write that waits, RING, {what}{more}", 3, "us", *row))
    return rows


def round_trips(effort: Effort, pingpong: Path | None) -> list[Row]:
    """Two members of which each writes when the other one has: a round trip, beside that of C."""
    if pingpong is None:
        return []
    with ExitStack() as stack:
        ours = start(stack, 2, OVER_RING)
        limit = stack.enter_context(Program([pingpong, "2", str(FRAME)]))
        asked = {"ours": f"trips {effort.waits}", "C": str(effort.waits)}
        samples = Rounds(2, effort, {"ours": ours, "C": limit}).each(asked)
    return [
        compare(
            "two that wait for each other, RING", 2, "us", micro(samples, "ours"),
            "C", micro(samples, "C"), Bar(1.0, 0.65),
        )
    ]  # fmt: skip


def fair(races: int, milliseconds: int) -> Row:
    """Three members that write without waiting for so long: the slowest beside the fastest."""
    with ExitStack() as stack:
        program = start(stack, 3, OVER_RING)
        _, *found = [program.ask(f"race {milliseconds}") for _ in range(1 + races)]
    return compare(
        "rate of the slowest of 3 writers, RING", 3, "/s", [least for least, _ in found],
        "fastest", [most for _, most in found], Bar(0.5, 0.8, at_least=True),
    )  # fmt: skip


def reads(effort: Effort) -> Row:
    """A read beside a plain method, in groups that are started anew: it differs from process to process, by where things lie."""
    samples: dict[str, list[float]] = {"shared": [], "plain": []}
    for _ in range(STARTS):
        with ExitStack() as stack:
            program = start(stack, 3, OVER_RING)
            both = Rounds(
                3,
                replace(effort, rounds=max(effort.rounds // STARTS, 1)),
                dict.fromkeys(samples, program),
            )
            for side, found in both.each(
                {side: f"{side}_read {effort.calls}" for side in samples}
            ).items():
                samples[side] += found
    return compare(
        "read, one attribute, RING", 3, "ns", scaled(samples["shared"], 1e9),
        "plain class", scaled(samples["plain"], 1e9), Bar(2.0, 1.8),
    )  # fmt: skip


def beside_total(effort: Effort) -> list[Row]:
    """What is measured beside plain Python, and the rate beside the same over TOTAL."""
    with ExitStack() as stack:
        programs = {
            name: start(stack, 3, layers)
            for name, layers in (("RING", OVER_RING), ("TOTAL", OVER_SEQUENCER))
        }
        rounds = Rounds(3, effort, programs)
        adds = Rounds(3, effort, {"plain": programs["RING"]}).each(
            {"plain": f"plain_add {effort.calls}"}
        )
        rates, core = rounds.bursts()
    return [
        compare(
            "write, no wait, (int), RING", 3, "ns", scaled(core["RING"], 1e9),
            "plain call", scaled(adds["plain"], 1e9), Bar(2.8, 2.0), rates["RING"],
        ),
        compare(
            "rate of (int), RING", 3, "/s", rates["RING"],
            "TOTAL", rates["TOTAL"], Bar(1.25, 1.5, at_least=True),
        ),
    ]  # fmt: skip


def measure(quick: bool) -> list[Row]:
    """All rows; without a C compiler, those that stand beside nothing in C."""
    effort = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as folder:
        try:
            pingpong: Path | None = compiled(Path(folder))
        except Lacking:
            pingpong = None
        return [
            *waits(effort, pingpong),
            *round_trips(effort, pingpong),
            *rested(effort),
            reads(effort),
            *beside_total(effort),
            fair(*(QUICK_RACES if quick else RACES)),
        ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    texts = (__doc__, EXAMPLES)
    return run_script("ring", texts, measure, time_limit=300, arguments=arguments)


if __name__ == "__main__":
    sys.exit(main())
