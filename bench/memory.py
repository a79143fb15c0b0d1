"""Measures how much memory a member takes, and whether that stays as it is while all write.

A member has what any interpreter has, so beside it are as many bare ones, with uvloop imported.
Memory that processes have in common counts in equal shares (Pss). The members then write 10
million times; before that they write as long as it takes to fill what is filled once and kept.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from orcalike.bench import processes
from orcalike.bench.harness import Program
from orcalike.bench.table import Bar, Row, compare, run_script

HERE = Path(__file__).parent
MEMBERS = 3
BARE = "import sys, uvloop\nfor line in sys.stdin: print(1, flush=True)"
ROUNDS = 10
"""The writes are cut into so many rounds."""

EXAMPLES = """\
examples:
  python -m orcalike.bench.memory             some ten seconds
  python -m orcalike.bench.memory --quick     fewer writes
"""


@dataclass(frozen=True)
class Effort:
    """How much is measured: writes of all members together."""

    warm_up: int
    writes: int


FULL = Effort(warm_up=3_000_000, writes=10_000_000)
QUICK = Effort(warm_up=20_000, writes=100_000)


def measure(quick: bool) -> list[Row]:
    """Both rows; their samples are the members."""
    effort = QUICK if quick else FULL
    with ExitStack() as stack:
        run = [sys.executable, "-m", "orcalike", "run", "--quiet", "--no-prefix"]
        command = [*run, "-n", str(MEMBERS), str(HERE / "member.py")]
        bare = [stack.enter_context(Program([sys.executable, "-c", BARE])) for _ in range(MEMBERS)]
        program = stack.enter_context(Program(command))
        for interpreter in bare:
            interpreter.ask(1)
        program.ask("wait 1")
        pids = [pid for rank, pid in processes.ranks(program).items() if rank >= 0]

        program.ask(f"int {effort.warm_up // MEMBERS}")
        beside = [processes.memory(interpreter.process.pid) for interpreter in bare]
        before = [processes.memory(pid) for pid in pids]
        for _ in range(ROUNDS):
            program.ask(f"int {effort.writes // ROUNDS // MEMBERS}")
        after = [processes.memory(pid) for pid in pids]
    return [
        compare(
            "memory of a member", MEMBERS, "MB", before, "interpreter with uvloop", beside,
            Bar(extra=25, extra_aim=12),
        ),
        compare("memory, many writes later", MEMBERS, "MB", after, "before", before, Bar(1.05, 1.02)),
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    texts = (__doc__, EXAMPLES)
    return run_script("memory", texts, measure, time_limit=120, arguments=arguments)


if __name__ == "__main__":
    sys.exit(main())
