"""Measures how often members that have nothing to do wake up.

A member sends a heartbeat each fifth of the detection time, to each other member (`heartbeat.pyx`):
a thread of its own wakes to send, and for each heartbeat that comes. Counted is how often any thread
of the members and of the witness has gone to sleep, beside the heartbeats that there must be. Each
process also looks which members are silent, when the one that is silent longest is due: a little
more often than once in each detection time. That is the second row.

All that is over a sequencer. Where the order is in shared memory no heartbeats are sent, as no member is held up. That is the
third row, beside the first one; the members wake by themselves once a second, to look for what to do.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orcalike.bench import processes
from orcalike.bench.harness import Program
from orcalike.bench.table import Bar, Row, compare, run_script
from orcalike.launch_protocol.environment import detection_at, find_detection

HERE = Path(__file__).parent
MEMBERS = 3
PROCESSES = MEMBERS + 1
"""With the witness."""
SHORTENED = 7 / 8
"""What is left of a period that is cut short by up to a quarter of it, at random."""

SETTLED = 1.5
"""Seconds after which a member that was held up is so no more, and sends no heartbeats."""

EXAMPLES = """\
examples:
  python -m orcalike.bench.idle             some twenty seconds
  python -m orcalike.bench.idle --quick     a look at the rows; the figures mean little
"""


@dataclass(frozen=True)
class Effort:
    """How much is measured; a round is `seconds` long."""

    rounds: int
    seconds: float


FULL = Effort(rounds=5, seconds=2.0)
QUICK = Effort(rounds=2, seconds=0.5)


def expected() -> tuple[float, float]:
    """A second, of all processes: wake-ups for heartbeats, and looks at how long members were silent."""
    detection = (find_detection()[0] or detection_at("")) / 1e9
    beats = PROCESSES / (detection / 5 * SHORTENED)
    return beats * PROCESSES, PROCESSES / detection


class Sleepers:
    """A group that does nothing. The thread that beats is the one that wakes up most."""

    def __init__(self, program: Program) -> None:
        self.pids = list(processes.ranks(program).values())

    def sample(self, seconds: float) -> tuple[float, float]:
        """Wake-ups a second of all threads, and of all but those that beat."""
        before = [processes.wakeups(pid) for pid in self.pids]
        began = time.monotonic()
        time.sleep(seconds)
        after = [processes.wakeups(pid) for pid in self.pids]
        passed = time.monotonic() - began
        woken = [
            [count - then.get(thread, 0) for thread, count in now.items()]
            for then, now in zip(before, after, strict=True)
        ]
        total = sum(map(sum, woken))
        return total / passed, (total - sum(map(max, woken))) / passed


def slept(effort: Effort, sequencer: Sequence[str], arguments: Sequence[str]) -> list[list[float]]:
    """The samples of all threads, and of all but those that beat."""
    run = [sys.executable, "-m", "orcalike", "run", "--quiet", "--no-prefix", *sequencer]
    command = [*run, "-n", str(MEMBERS), str(HERE / "member.py"), *arguments]
    with Program(command) as program:
        program.ask("wait 1")
        sleepers = Sleepers(program)
        time.sleep(max(effort.seconds / 2, SETTLED))  # what they did is over
        taken = [sleepers.sample(effort.seconds) for _ in range(effort.rounds)]
    return [[sample[i] for sample in taken] for i in (0, 1)]


def rows(kind: str, effort: Effort, *arguments: str) -> list[Row]:
    """Of members on threads of their own, or on event loops."""
    everything, others = slept(effort, ("--sequencer", "witness"), arguments)
    in_memory, _ = slept(effort, (), ("--idle=1", *arguments))
    beats, looks = ([each] * effort.rounds for each in expected())
    return [
        compare(
            f"idle, {kind}: wake-ups", MEMBERS, "/s", everything, "heartbeats", beats,
            Bar(1.15, 1.05),
        ),
        compare(
            f"idle, {kind}: of other threads", MEMBERS, "/s", others, "looks at them", looks,
            Bar(1.5, 1.25),
        ),
        compare(
            f"idle, {kind}, RING: wake-ups", MEMBERS, "/s", in_memory, "over a sequencer", everything,
            Bar(0.2, 0.1),
        ),
    ]  # fmt: skip


def measure(quick: bool) -> list[Row]:
    """All rows."""
    effort = QUICK if quick else FULL
    return rows("threads", effort) + rows("event loop", effort, "--loop")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    texts = (__doc__, EXAMPLES)
    return run_script("idle", texts, measure, time_limit=60, arguments=arguments)


if __name__ == "__main__":
    sys.exit(main())
