"""The bars that real processes answer for: G7 to G9, G11 to G14, G16, G25, G43.

G9 cuts connections; partitions that last are the simulator's.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from orcalike.history_check.check import check_histories
from orcalike.history_check.records import load
from tests.campaign.bars import Bar, Figure, Scale, percentile
from tests.campaign.members import Processes, Settings
from tests.campaign.models import model_of
from tests.campaign.real import Run, Strike, arguments, longest_calls
from tests.lib.processes import Stuck

DETECTION = 500.0
"""D, in ms, as it is by default."""


@dataclass
class Campaign:
    """What some runs came to."""

    cycles: int = 0
    acknowledged: int = 0
    delivered: int = 0
    lost: int = 0
    wrong: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    @property
    def shown(self) -> str:
        """The writers' pauses, in ms and in multiples of D."""
        parts = [(name, percentile(self.pauses, part)) for name, part in PARTS]
        return ", ".join(f"{name} {ms:.0f} ms = {ms / DETECTION:.2f} D" for name, ms in parts)

    @property
    def figures(self) -> dict[str, float]:
        """The same for the record."""
        return {f"pause {name} ms": percentile(self.pauses, part) for name, part in PARTS}


PARTS = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))

CHECKED = Campaign()
"""All that was checked so far, for G11."""


def options(**given: object) -> argparse.Namespace:
    """What `tests.campaign.real` takes, as a campaign needs it."""
    usual = vars(arguments([])) | {"n": 5, "r": 2, "detection": DETECTION}
    return argparse.Namespace(**usual | given)


def torment(cycles: int, seed: int, **given: object) -> Campaign:
    """So many faults, a few in each group; what fails is kept with its folder."""
    campaign = Campaign()
    chosen = options(**given)
    while campaign.cycles < cycles:
        folder = Path(tempfile.mkdtemp(prefix="orcalike-"))
        some = min(chosen.per_run, cycles - campaign.cycles)
        outcome = Run(folder, chosen, seed).go(some)
        verdict = outcome.verdict
        for each in (campaign, CHECKED):
            each.cycles += some
            each.acknowledged += verdict.acknowledged
            each.delivered += verdict.delivered
            each.lost += verdict.lost
        campaign.pauses += outcome.pauses
        if verdict.violations:
            campaign.wrong.append(f"{folder}, seed {seed}: {verdict.violations[0]}")
        else:
            shutil.rmtree(folder)
        seed += 1
    return campaign


def measure_kills(scale: Scale) -> list[Figure]:
    """G7: the sequencer and one more are killed at once, 1,000 writes a second, n=5, r=2."""
    it = torment(scale.of(100, 300), 7_000, fault=["kill-sequencer+1"])
    text = f"{it.cycles} cycles, {it.acknowledged} acknowledged, {len(it.wrong)} runs wrong; {it.shown}"
    return [Figure("G7", text, not it.wrong, it.wrong, it.figures)]


def measure_stops(scale: Scale) -> list[Figure]:
    """G8 and G13: the sequencer stands still for 3 D, and for 10 D."""
    short = torment(scale.of(20, 150), 8_000, fault=["stop-sequencer-3"])
    long = torment(scale.of(5, 50), 8_500, fault=["stop-sequencer-10"])
    both = Campaign(pauses=short.pauses + long.pauses)
    wrong = short.wrong + long.wrong
    text = f"{short.cycles} at 3 D, {long.cycles} at 10 D, {len(wrong)} runs wrong"
    p50, p99, most = (percentile(both.pauses, part) for _, part in PARTS)
    met = p50 <= 1.2 * DETECTION and p99 <= 2 * DETECTION + 50 and most <= 3 * DETECTION
    return [
        Figure("G8", text, not wrong, wrong),
        Figure("G13", both.shown, met and bool(both.pauses), figures=both.figures),
    ]


def measure_cuts(scale: Scale) -> list[Figure]:
    """G9: the connections of the sequencer, or of another member, break."""
    it = torment(scale.of(20, 60), 9_000, fault=["cut-sequencer", "cut-random"])
    text = f"{it.cycles} cuts, {len(it.wrong)} runs wrong; {it.shown}"
    return [Figure("G9", text, not it.wrong, it.wrong, it.figures)]


def measure_fail_over(scale: Scale) -> list[Figure]:
    """G12: the sequencer is killed, and its connections say so."""
    it = torment(scale.of(20, 100), 12_000, fault=["kill-sequencer"], r=1)
    p50, p99, most = (percentile(it.pauses, part) for _, part in PARTS)
    met = p50 <= 30 and p99 <= 250 and most <= 1_000 and not it.wrong and bool(it.pauses)
    return [Figure("G12", it.shown, met, it.wrong, it.figures)]


def measure_called(scale: Scale) -> list[Figure]:
    """G43: what callers see where no history is kept, which would have no call take the short ways."""
    faults = ["kill-sequencer", "kill-random", "stop-random-0.5", "stop-random-3", "cut-random"]
    it = torment(scale.of(40, 200), 43_000, fault=faults, called=True, n=3, r=1, per_run=3)
    text = f"{it.cycles} faults, {it.acknowledged} calls, {len(it.wrong)} runs wrong"
    return [Figure("G43", text, not it.wrong, it.wrong)]


def measure_checked(scale: Scale) -> list[Figure]:
    """G11: how much of all this was checked."""
    searched = CHECKED.cycles and 10_000
    text = f"{CHECKED.delivered} by the order, {searched} calls a run by the search"
    return [Figure("G11", text, CHECKED.delivered >= scale.of(200_000, 1_000_000))]


def started(folder: Path, settings: Settings, seed: int, size: int) -> Processes:
    """A group of that size, all in one view."""
    processes = Processes(folder, settings, seed)
    for _ in range(size):
        member = processes.start()
        processes.until(lambda member=member: member.view or not member.runs, "a member joins")  # type: ignore[misc]
    processes.until(processes.agreed, "all in one view")
    return processes


def end(processes: Processes, degree: int) -> list[str]:
    """All leave, and their histories are checked."""
    stuck: list[str] = []
    try:
        processes.finish()
    except Stuck as why:
        stuck.append(str(why))
    finally:
        processes.end()
    histories = load(processes.folder / "history")
    verdict = check_histories(histories, degree, model_of)
    for each in verdict.violations[:3]:
        stuck.append(f"{processes.folder}: {each}")
    CHECKED.delivered += verdict.delivered
    if not stuck:
        shutil.rmtree(processes.folder)
    return stuck


def measure_false_suspicion(scale: Scale) -> list[Figure]:
    """G14: five members that write as fast as they can, on all there is of the machine."""
    seconds = scale.of(300, 3_600)
    processes = started(
        Path(tempfile.mkdtemp(prefix="orcalike-")), Settings(degree=1, interval=0.02), 14, 5
    )
    before = processes.inside()[0].view
    time.sleep(seconds)
    after = [member.view for member in processes.inside()]
    changes = max(view[1] for view in after) - before[1]
    wrong = end(processes, 1)
    return [Figure("G14", f"{changes} changes in {seconds} s", not changes and not wrong, wrong)]


def measure_flush(scale: Scale) -> list[Figure]:
    """G16: members leave and join a group that writes 1,000 times a second; for how long is a write held up?

    Not as fast as it can: if all cores are taken, the scheduler's turns are what is measured. What a process takes to
    start is part of the time in which it joins.
    """
    settings = Settings(interval=5 * 2 / 1000)  # two threads that write, in each of five
    processes = started(Path(tempfile.mkdtemp(prefix="orcalike-")), settings, 16, 6)
    strikes = []
    for _ in range(scale.of(10, 30)):
        time.sleep(0.3)
        youngest = processes.by_age()[-1]
        youngest.write("stop")
        processes.until(lambda it=youngest: it.stopped or not it.runs, "the youngest stops")  # type: ignore[misc]
        time.sleep(0.1)
        strikes.append(Strike(time.monotonic_ns(), "leave", [youngest.incarnation]))
        youngest.write("leave")
        processes.until(lambda it=youngest: not it.runs, "the youngest leaves")  # type: ignore[misc]
        time.sleep(0.2)
        strikes.append(Strike(time.monotonic_ns(), "join"))
        processes.start()
        processes.until(lambda: len(processes.inside()) == 6 and processes.agreed(), "six again")
    folder = processes.folder
    kept = folder.with_name(folder.name + "-kept")
    shutil.copytree(folder / "history", kept)
    wrong = end(processes, 0)
    histories = load(kept)
    shutil.rmtree(kept)
    left, joined = (longest_calls(histories, strikes, fault) for fault in ("leave", "join"))
    p50, leaving, joining = (percentile(each, 0.5) for each in ([*left, *joined], left, joined))
    text = f"p50 {p50:.1f} ms, {leaving:.1f} as one leaves, {joining:.1f} as one joins; {len(strikes)} changes"
    return [Figure("G16", text, p50 <= 10 and not wrong, wrong)]


def measure_storm(scale: Scale) -> list[Figure]:
    """G25: members come and go, 100 changes a minute; now and then one is killed."""
    seconds, degree = scale.of(120, 600), 1
    rng = random.Random(25)
    settings = Settings(degree=degree, interval=5 * 2 / 200)
    processes = started(Path(tempfile.mkdtemp(prefix="orcalike-")), settings, 25, 4)
    start, changes = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        inside = processes.by_age()
        coming = sum(member.runs for member in processes.members) - len(inside)
        if len(inside) + coming <= 5 or (len(inside) + coming < 12 and rng.random() < 0.5):
            processes.start()
        elif rng.random() < 0.2:
            rng.choice(inside).signal(signal.SIGKILL)
        else:
            gone = rng.choice(inside)
            gone.write("stop")
            gone.write("leave")
        changes += 1
        time.sleep(max(0.0, start + changes * 0.6 - time.monotonic()))
    came = time.monotonic()
    wrong: list[str] = []
    try:
        processes.until(
            lambda: processes.inside() and processes.agreed(), "one view after the storm"
        )
    except Stuck as why:
        wrong.append(str(why))
    rest = time.monotonic() - came
    wrong += end(processes, degree)
    text = f"{changes} changes, one view after {rest:.1f} s, {len(wrong)} wrong"
    return [Figure("G25", text, not wrong and rest <= 5, wrong)]


BARS = [
    Bar(("G7",), {"G7": "100 kills of two, 0 lost or doubled"}, measure_kills),
    Bar(
        ("G8", "G13"),
        {"G8": "20 at 3 D, 5 at 10 D, 0 stale", "G13": "p50 1.2 D, p99 2 D + 50 ms, max 3 D"},
        measure_stops,
    ),
    Bar(("G9",), {"G9": "20 cuts, 0 dual primaries"}, measure_cuts),
    Bar(("G12",), {"G12": "p50 30 ms, p99 250 ms, max 1 s"}, measure_fail_over),
    Bar(("G43",), {"G43": "40 faults, every call linearizable"}, measure_called),
    Bar(("G14",), {"G14": "0 view changes in 5 min of load"}, measure_false_suspicion),
    Bar(("G16",), {"G16": "n=5: <= 10 ms"}, measure_flush),
    Bar(("G25",), {"G25": "100 changes/min, 2 min, one view in 5 s"}, measure_storm),
    Bar(("G11",), {"G11": "200 k by the order, 10 k by the search"}, measure_checked),
]
