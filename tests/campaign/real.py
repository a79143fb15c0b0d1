"""Real processes under faults, checked by what they recorded.

    python -m tests.campaign.real --cycles 20 --n 5 --r 2 --fault kill-sequencer+1 --seed 7

A run starts the members, and then goes through some cycles: it waits until all are in one view and
write, strikes, waits until all that are left are in one view and write, and starts new members for
those that are gone. In the end all stop, their histories are read and checked, and the writers'
pauses are measured: at each fault, and for each member that lived on, the longest time between two
acknowledgements.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from orcalike.history_check.blackbox import NEVER
from orcalike.history_check.check import Verdict, check_histories
from orcalike.history_check.records import History, Violation, load
from tests.campaign.bars import percentile
from tests.campaign.members import Member, Processes, Settings
from tests.campaign.models import READS, model_of
from tests.lib.called import Called, check_calls, load_calls
from tests.lib.processes import Stuck
from tests.lib.programs import OVER_SOCKETS

STOPS = (0.5, 1.5, 3.0, 10.0)
"""How long a member is stopped, in multiples of the detection time."""

FAULTS = (
    "none",
    "kill-sequencer",
    "kill-sequencer+1",
    "kill-oldest",
    "kill-random",
    *(f"stop-{target}-{times:g}" for target in ("sequencer", "random") for times in STOPS),
    "cut-sequencer",
    "cut-random",
)


@dataclass
class Strike:
    """One fault as it happened."""

    when: int
    """ns, monotonic."""
    fault: str
    gone: list[str] = field(default_factory=list)
    """The incarnations that were killed, or stopped."""


@dataclass
class Outcome:
    """What one run came to."""

    verdict: Verdict
    pauses: list[float]
    """In ms, of each writer at each fault."""
    strikes: int


class Run:
    """One group, from its first member to its end: with an even seed its order is in shared memory."""

    def __init__(self, folder: Path, options: argparse.Namespace, seed: int) -> None:
        self.options = options
        self.rng = random.Random(seed)
        self.detection: float = options.detection / 1000
        threads = 2  # that write, in each member
        interval = options.n * threads / options.rate if options.rate else 0.0
        in_memory = seed % 2 == 0 and not options.failpoints  # those are in the way of frames
        settings = Settings(
            options.r,
            interval,
            options.read_interval,
            options.objects,
            options.failpoints,
            "" if in_memory else OVER_SOCKETS,
            options.called,
        )
        self.in_memory = in_memory
        self.processes = Processes(folder, settings, seed)
        self.folder = folder
        self.strikes: list[Strike] = []

    def go(self, cycles: int) -> Outcome:
        """All cycles, then the end and the check."""
        stuck: list[Violation] = []
        try:
            while len(self.processes.members) < self.options.n:
                self._start()
            for _ in range(cycles):
                self._settle()
                self._strike(self.rng.choice(self.options.fault))
                self._fill_up()
            self._settle()
            self.processes.finish()
        except Stuck as why:
            stuck.append(Violation("I28", "", str(why)))
            time.sleep(0.5)  # until the stacks are written
        finally:
            self.processes.end()
        outcome = self._checked_calls() if self.options.called else self._checked_histories()
        outcome.verdict.violations += [*stuck, *self._troubles()]
        return outcome

    def _checked_histories(self) -> Outcome:
        """What the members' histories show."""
        histories = load(self.folder / "history")
        verdict = check_histories(histories, self.options.r, model_of, self.options.black_box)
        if self.options.failpoints and not any(True for h in histories for _ in h.of("fault")):
            verdict.violations.append(Violation("3a", "", "the failpoint was never passed"))
        return Outcome(verdict, pauses(histories, self.strikes), len(self.strikes))

    def _checked_calls(self) -> Outcome:
        """What the callers have written down, and what the members show in the end."""
        calls = load_calls(self.folder / "calls")
        ended = [
            each.call for made in calls.values() for each in made if each.call.returned != NEVER
        ]
        verdict = Verdict(len(self.processes.members), acknowledged=len(ended))
        fresh = self._is_fresh if self.in_memory else lambda read: read.is_last
        verdict.violations = check_calls(calls, model_of, READS, fresh)
        past_layers = [each.past_layers for each in self.processes.members if each.stopped]
        if None in past_layers:
            verdict.violations.append(Violation("I28", "", "a member has not read all in the end"))
        if any(past_layers) != self.in_memory:
            verdict.violations.append(
                Violation("H81", "", f"writes past the layers: {past_layers}")
            )
        return Outcome(verdict, [], len(self.strikes))

    def _is_fresh(self, read: Called) -> bool:
        """Whether it shows all that was over before it.

        One of a member that was stopped, and that the others expelled, need not until it has joined again.
        """
        began = read.call.invoked
        seeds = {str(self.processes.seed_of(each.number)): each for each in self.processes.members}
        joined = seeds[read.process].joined
        if not any(when > began for when in joined):
            return True
        was_in = max((when for when in joined if when <= began), default=0)
        return not any(was_in < strike.when < began for strike in self.strikes)

    def _start(self) -> Member:
        member = self.processes.start()
        self.processes.until(
            lambda: member.view or not member.runs, f"member {member.number} joins"
        )
        if not member.runs:
            raise Stuck(f"member {member.number} ended with {member.process.returncode}")
        return member

    def _settle(self) -> None:
        """All are in one view; then they write for a while."""
        self.processes.until(self.processes.agreed, "all in one view")
        time.sleep(self.options.between * self.rng.uniform(0.5, 1.5))

    def _fill_up(self) -> None:
        """New members for those that are gone, once the others have agreed on that."""
        self.processes.until(self.processes.agreed, "the others in one view")
        while len(self.processes.inside()) < self.options.n:
            self._start()

    def _troubles(self) -> list[Violation]:
        """Errors that programs had to handle; to join again after Expelled is none."""
        return [
            Violation("pause", member.incarnation, text)
            for member in self.processes.members
            for text in member.trouble
        ]

    # Faults.

    def _strike(self, fault: str) -> None:
        strike = Strike(time.monotonic_ns(), fault)
        self.strikes.append(strike)
        what, _, rest = fault.partition("-")
        target, _, times = rest.partition("-")
        if what == "none":
            return
        targets = self._targets(target)
        if what == "kill":
            strike.gone = [member.incarnation for member in targets]
            for member in targets:
                member.signal(signal.SIGKILL)
            for member in targets:
                member.process.wait()
        elif what == "stop":
            strike.gone = [targets[0].incarnation]  # its own pause says nothing
            self._stop(targets[0], float(times) * self.detection)
        else:
            targets[0].write("cut")

    def _targets(self, target: str) -> list[Member]:
        sequencer, *others = self.processes.by_age()
        match target:
            case "sequencer":
                return [sequencer]
            case "sequencer+1":
                return [sequencer, self.rng.choice(others)]
            case "oldest":
                return [others[0]]
        return [self.rng.choice([sequencer, *others])]

    def _stop(self, member: Member, seconds: float) -> None:
        """Have it stand still; if the others went on without it, it joins again."""
        member.signal(signal.SIGSTOP)
        time.sleep(seconds)
        member.signal(signal.SIGCONT)
        time.sleep(self.detection)
        self.processes.until(self.processes.agreed, "all in one view, the stopped member too")


def pauses(histories: list[History], strikes: list[Strike]) -> list[float]:
    """At each fault, the longest time between two acknowledgements of each member that lived on."""
    found = []
    ends = [*(strike.when for strike in strikes[1:]), NEVER][: len(strikes)]
    for history in histories:
        times = sorted(record["t"] for record in history.of("ok"))
        for strike, end in zip(strikes, ends, strict=True):
            if not times or not times[0] < strike.when < times[-1]:
                continue
            gaps = [b - a for a, b in pairwise(times) if b > strike.when and a < end]
            if history.incarnation not in strike.gone and gaps:
                found.append(max(gaps) / 1e6)
    return found


def longest_calls(histories: list[History], strikes: list[Strike], fault: str) -> list[float]:
    """At each fault of a kind, the longest call of each member that lived on, in ms; until the next fault of any kind.

    What a writer waits between two calls is no part of it.
    """
    found = []
    ends = [*(strike.when for strike in strikes[1:]), NEVER][: len(strikes)]
    for history in histories:
        ended = {record["ticket"]: record["t"] for record in history.of("ok", "fail", "info")}
        last = max(ended.values(), default=0)  # one that has not ended lasts until then
        invoked = [
            it for it in history.of("invoke") if it["object"]
        ]  # what the group itself does has no outcome
        calls = [(it["t"], ended.get(it["ticket"], last)) for it in invoked]
        for strike, end in zip(strikes, ends, strict=True):
            times = [b - a for a, b in calls if b > strike.when and a < end]
            if strike.fault == fault and history.incarnation not in strike.gone and times:
                found.append(max(times) / 1e6)
    return found


def shown(values: list[float], detection: float) -> str:
    """Pauses, in ms and in multiples of the detection time."""
    if not values:
        return "none measured"
    parts = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)]
    figures = [(name, percentile(values, part)) for name, part in parts]
    return ", ".join(f"{name} {ms:.1f} ms = {ms / detection:.2f} D" for name, ms in figures)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """These, or the command line's."""
    parser = argparse.ArgumentParser(prog="tests.campaign.real", description=__doc__)
    parser.add_argument("--cycles", type=int, default=20, help="faults in all (default: 20)")
    parser.add_argument("--per-run", type=int, default=5, help="faults in one group (default: 5)")
    parser.add_argument("--n", type=int, default=3, help="members (default: 3)")
    parser.add_argument("--r", type=int, default=0, help="resilience degree (default: 0)")
    parser.add_argument(
        "--fault", action="append", choices=FAULTS, help="one of these in each cycle (repeatable)"
    )
    parser.add_argument("--failpoints", default="", help="ORCALIKE_FAIL of the first member")
    parser.add_argument("--rate", type=int, default=1000, help="writes/s in all; 0: unpaced")
    parser.add_argument("--read-interval", type=float, default=0.002, help="s, of each member")
    parser.add_argument("--objects", type=int, default=2, help="of each kind (default: 2)")
    parser.add_argument("--between", type=float, default=0.5, help="seconds between faults")
    parser.add_argument("--detection", type=float, default=500, help="the detection time, in ms")
    parser.add_argument("--black-box", type=int, default=10_000, help="calls for the search")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--called",
        action="store_true",
        help="callers write down what they call, and the product keeps no history: calls take the short ways",
    )
    options = parser.parse_args(given)
    options.fault = options.fault or ["none"]
    if min(options.cycles, options.per_run, options.n) < 1:
        parser.error("--cycles, --per-run and --n take numbers from 1 on")
    return options


def main() -> None:
    """Runs until all cycles are done; exit code 1 if anything was wrong."""
    options = arguments()
    print(f"{'SEED':>6} {'FAULTS':>6} {'MESSAGES':>9} {'ACKED':>8} {'LOST':>5} {'WRONG':>6}  PAUSE")
    everything: list[float] = []
    wrong = done = 0
    seed = options.seed
    while done < options.cycles:
        folder = Path(tempfile.mkdtemp(prefix="orcalike-"))
        cycles = min(options.per_run, options.cycles - done)
        outcome = Run(folder, options, seed).go(cycles)
        verdict = outcome.verdict
        print(
            f"{seed:>6} {outcome.strikes:>6} {verdict.delivered:>9} {verdict.acknowledged:>8} "
            f"{verdict.lost:>5} {len(verdict.violations):>6}  "
            f"{shown(outcome.pauses, options.detection)}",
            flush=True,
        )
        for violation in verdict.violations[:20]:
            print(f"       {violation}")
        if verdict.violations:
            print(f"       --seed {seed}; what it recorded: {folder}", flush=True)
            wrong += 1
        else:
            shutil.rmtree(folder)
        everything += outcome.pauses
        done += cycles
        seed += 1
    print(f"{done} cycles, {wrong} runs wrong; pauses: {shown(everything, options.detection)}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
