"""The bars that the simulator answers for: G1 to G6, G27, G29, G30, G35."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from orcalike.simulator.checkers.facts import Violation
from orcalike.simulator.exhaustive import explore
from orcalike.simulator.fault_matrix import Cell, cells, try_cell
from orcalike.simulator.generator import draw
from orcalike.simulator.scenario import Event, Scenario
from orcalike.simulator.simulation import Run
from orcalike.simulator.transcript import Transcript
from orcalike.transport.membership import messages
from tests.campaign.bars import Bar, Figure, Scale
from tests.lib.order_scenarios import over_either
from tests.lib.ring_scenarios import cells_over_ring, draw_over_ring, over_ring
from tests.protocol import sim_bootstrap

Kind = tuple[Callable[[Scenario], Scenario], str]

WORKERS = 2
HOUR = 3_600 * 10**9
KINDS_OF_ORDER = 4
"""Of so many seeds of each worker one has its order in shared memory, and one has an order that goes over."""

AS_DRAWN: Kind = (lambda scenario: scenario), "orcalike simulate --seed"
"""Through a sequencer, and how it is seen again."""

OTHER_ORDERS: dict[int, Kind] = {
    0: (over_ring, "tests.lib.ring_scenarios"),
    2: (over_either, "tests.lib.order_scenarios"),
}

TRACES = """
from orcalike.simulator.simulation import Run
from orcalike.simulator.generator import draw
for seed in range({first}, {last}):
    run = Run(draw(seed))
    try:
        run.run()
    except AssertionError:
        pass
    print(run.world.trace)
"""


@dataclass
class Volume:
    """What a worker's seeds came to."""

    seeds: int = 0
    steps: int = 0
    simulated: int = 0
    seconds: float = 0.0
    broken: tuple[str, ...] = ()
    late: int = 0
    """Seeds that did not recover after the faults."""


def seeds_of(first: int, seeds: int, steps: int) -> Volume:
    """Every second seed from `first` on, until there are enough of both."""
    volume = Volume()
    start = time.process_time()
    for seed in count(first, WORKERS):
        if volume.seeds >= seeds and volume.steps >= steps:
            break
        change, program = OTHER_ORDERS.get(seed // WORKERS % KINDS_OF_ORDER, AS_DRAWN)
        run = Run(change(draw(seed)))
        try:
            run.run()
        except Violation as violation:
            volume.broken += (f"python -m {program} {seed}: {violation}",)
            volume.late += violation.id == "I28"
        volume.seeds += 1
        volume.steps += run.world.steps
        volume.simulated += run.world.now
    volume.seconds = time.process_time() - start
    return volume


def measure_volume(scale: Scale) -> list[Figure]:
    """G1, G2, G3 and G29: many seeds, on both cores; others each time."""
    seeds, steps = scale.of(20_000, 100_000), scale.of(15_000_000, 75_000_000)
    begin = secrets.randbelow(1 << 32) << 20
    start = time.monotonic()
    with ProcessPoolExecutor(WORKERS) as pool:
        parts = [
            pool.submit(seeds_of, begin + first, seeds // WORKERS, steps // WORKERS)
            for first in range(WORKERS)
        ]
        volumes = [part.result() for part in parts]
    minutes = (time.monotonic() - start) / 60
    done, total = sum(each.seeds for each in volumes), sum(each.steps for each in volumes)
    speed = total / sum(each.seconds for each in volumes)
    hours = sum(each.simulated for each in volumes) / HOUR / minutes
    broken = [line for each in volumes for line in each.broken]
    late = sum(each.late for each in volumes)
    many = f"{total / 1e6:.1f} M steps, {done} seeds from {begin} on, {len(broken)} broken"
    enough = done >= seeds // WORKERS * WORKERS and total >= steps // WORKERS * WORKERS
    return [
        Figure("G1", f"{speed / 1e3:.1f} k/s", speed >= 25_000, figures={"steps/s": speed}),
        Figure("G2", many, enough and not broken, broken),
        Figure("G3", f"{hours:.1f} h", hours >= 1),
        Figure("G29", f"{late} of {done} seeds late", not late),
    ]


def measure_determinism(scale: Scale) -> list[Figure]:
    """G4: the same seeds in two processes whose hashes differ."""
    seeds = scale.of(200, 1_000)
    outputs = []
    for hash_seed in ("0", "1"):
        outputs.append(
            subprocess.run(
                [sys.executable, "-c", TRACES.format(first=0, last=seeds)],
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
        )
    same = sum(one == other for one, other in zip(*outputs, strict=True))
    return [Figure("G4", f"{same} of {seeds}", same == seeds)]


def one_cell(named: tuple[str, Cell]) -> str:
    """ "fired", "never", or what it broke; over the order that is named."""
    order, cell = named
    try:
        if order == "RING":
            result = try_cell(cell, range(40), over_ring)
        else:
            result = try_cell(cell, range(40))
    except Violation as violation:
        return str(violation)
    return "never" if result is None else "fired"


def measure_cells(scale: Scale) -> list[Figure]:
    """G5: each fault at each step, once, over each order that has the step."""
    every = [("TOTAL", cell) for cell in cells()] + [("RING", cell) for cell in cells_over_ring()]
    with ProcessPoolExecutor(WORKERS) as pool:
        results = list(pool.map(one_cell, every, chunksize=8))
    fired = results.count("fired")
    notes = [
        f"{order}: {cell}: {came}"
        for (order, cell), came in zip(every, results, strict=True)
        if came != "fired"
    ]
    return [Figure("G5", f"{fired} of {len(every)} cells", fired == len(every), notes)]


def measure_small_scope(scale: Scale) -> list[Figure]:
    """G6: every order of one write and one crash."""
    start = time.monotonic()
    try:
        explored = explore(
            3, (Event("cast", 0, "1", degree=1),), 1, runs_max=scale.of(60_000, 10**7)
        )
    except Violation as violation:
        notes = [str(violation), *getattr(violation, "__notes__", [])]
        return [Figure("G6", "an invariant is broken", False, notes)]
    seconds = time.monotonic() - start
    how = "complete" if explored.whole else "not complete"
    text = f"{how}: {explored.runs} orders, {explored.states} states, {seconds:.0f} s"
    return [Figure("G6", text, explored.whole and seconds < 600)]


FAILING = (
    "silence-unnoticed",
    "return-nothing",
    "no-majority",
    "suspected-is-dead",
    "half-without-oldest",
    "frozen-for-good",
)
"""Mutants of Python modules that a seed below 100 shows."""


def smallest_of(mutant: str) -> Scenario | None:
    """The first seed that shows a mutant, made small; None if there is none below 100."""
    with tempfile.TemporaryDirectory(prefix="orcalike-shrunk-") as folder:
        path = Path(folder) / "found.json"
        program = ("-m", "tests.campaign.mutants.planted", mutant, "orcalike")
        asked = ("simulate", "--seeds", "0..99", "--shrink", "--save", str(path))
        subprocess.run([sys.executable, *program, *asked], check=False, capture_output=True)
        return Scenario.from_json(path.read_text()) if path.exists() else None


def measure_shrinking(scale: Scale) -> list[Figure]:
    """G27: what fails is made small."""
    small = tried = 0
    notes = []
    for mutant in FAILING[: scale.of(len(FAILING), len(FAILING))]:
        start = time.monotonic()
        smallest = smallest_of(mutant)
        seconds = time.monotonic() - start
        if smallest is None:
            notes.append(f"no seed shows {mutant}")
            continue
        events = sum(event.do not in ("join", "lag") for event in smallest.events)
        tried += 1
        if events <= 15 and seconds <= 120:
            small += 1
        else:
            notes.append(f"{mutant}: {events} events after {seconds:.0f} s")
    text = f"{small} of {tried} to 15 events or less"
    return [Figure("G27", text, tried > 0 and small >= 0.9 * tried, notes)]


Pair = tuple[str, str]
"""A state of the receiver, and the kind of a message that came in it."""


class Pairs(Transcript):
    """Which message came in which state of its receiver."""

    def __init__(self, run: Run, seen: set[Pair]) -> None:
        super().__init__(run)
        self.seen = seen

    def _add(self, name: str, what: str, source: str = "") -> None:
        if source:
            application = self.run.current[name]
            agreement = application.membership.agreement
            if agreement.view is None:
                state = "outside"
            elif agreement.coordinator.ballot is not None:
                state = "leads" if agreement.coordinator.ballot.value is None else "proposes"
            else:
                state = "frozen" if agreement.frozen else "normal"
            words = what.split()
            kind = words[1] if words[0].startswith("v") and len(words) > 1 else words[0]
            self.seen.add((state, kind))


STATES = ("outside", "normal", "frozen", "leads", "proposes")
KINDS = {"HELLO", "REQUEST", "ORDERED", "EXPECT", "OFFER", "state", *messages.KINDS} - {
    *("DENIED", "NOWHERE", "TAKEN", "INSIDE")
}
"""What is sent among members that agree on their options; ACCEPT is MBRSHIP's and TOTAL's, OFFER is RING's.

The four that are left out refuse a process, or pass among ranks that are to make a group (G35).
"""

UNREACHABLE: dict[Pair, str] = {}
"""Pairs of state and kind that cannot be, and why; one of these that comes is a failure, too.

None is known: whatever is sent can be under way for long, and its receiver be in any state then.
"""

WANTED = {(state, kind) for state in STATES for kind in KINDS} - UNREACHABLE.keys()
FEW_SEEDS = range(400)
IN_MEMORY = range(100)
"""Seeds over an order in shared memory, which has kinds of its own."""
RARE = Path(__file__).parent / "pairs"
"""Scenarios in which the pairs come that these show not, each named after its pair (`rare_pairs`)."""


def pairs_in(scenario: Scenario) -> set[Pair]:
    """The pairs that come in a scenario, whether it breaks something or not: G2 tells of that."""
    seen: set[Pair] = set()
    run = Run(scenario)
    Pairs(run, seen)
    with suppress(Violation):
        run.run()
    return seen


def measure_pairs(scale: Scale) -> list[Figure]:
    """G30: each kind of message came in each state of its receiver, or cannot."""
    scenarios = [Scenario.from_json(path.read_text()) for path in sorted(RARE.glob("*.json"))]
    seeds = range(scale.of(len(FEW_SEEDS), 4_000))
    drawn = chain(map(draw, seeds), map(draw_over_ring, IN_MEMORY))
    seen = set[Pair]().union(*map(pairs_in, chain(scenarios, drawn)))
    notes = [f"{kind} never came when {state}" for state, kind in sorted(WANTED - seen)]
    notes += [
        f"{kind} came when {state}: not in the table" for state, kind in sorted(seen - WANTED)
    ]
    text = f"{len(WANTED & seen)} of {len(WANTED)} pairs, {len(KINDS)} kinds"
    return [Figure("G30", text, not notes, notes)]


def orders_of(first: int, orders: int) -> tuple[int, list[str]]:
    """Every second order of starts, kills and restarts: how many groups were made, and what was broken."""
    made, broken = 0, []
    for seed in range(first, first + WORKERS * orders, WORKERS):
        try:
            made += sim_bootstrap.run(seed)
        except Violation as violation:
            broken.append(f"python -m tests.protocol.sim_bootstrap {seed}: {violation}")
    return made, broken


def measure_bootstrap(scale: Scale) -> list[Figure]:
    """G35: jobs whose group all ranks make; other ones each time."""
    orders = scale.of(10_000, 100_000) // WORKERS or 1
    begin = secrets.randbelow(1 << 32) << 20
    with ProcessPoolExecutor(WORKERS) as pool:
        parts = [pool.submit(orders_of, begin + first, orders) for first in range(WORKERS)]
        made, broken = 0, list[str]()
        for part in parts:
            groups, wrong = part.result()
            made, broken = made + groups, broken + wrong
    text = f"{orders * WORKERS} orders, {made} groups, {len(broken)} broken"
    return [Figure("G35", text, not broken, broken)]


BARS = [
    Bar(
        ("G1", "G2", "G3", "G29"),
        {
            "G1": ">= 25 k steps/s/core",
            "G2": "15 M steps, 20,000 fresh seeds, 0 broken",
            "G3": ">= 1 h simulated a minute",
            "G29": "100 % right within 10 D",
        },
        measure_volume,
    ),
    Bar(("G4",), {"G4": "200 seeds, equal traces"}, measure_determinism),
    Bar(("G5",), {"G5": "each cell once"}, measure_cells),
    Bar(("G6",), {"G6": "1 write, 1 crash, complete in 10 min"}, measure_small_scope),
    Bar(("G27",), {"G27": "<= 15 events in 2 min for 90 %"}, measure_shrinking),
    Bar(("G30",), {"G30": "each kind of message in each state"}, measure_pairs),
    Bar(("G35",), {"G35": "10,000 orders, never two groups of one job"}, measure_bootstrap),
]
