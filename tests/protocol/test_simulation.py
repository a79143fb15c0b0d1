"""Runs of the simulator with faults: that seeds keep the promises, and what examines them works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from random import Random

import pytest
from click.testing import CliRunner

from orcalike.cli.verbs import cli
from orcalike.simulator import scenario as scenario_module
from orcalike.simulator.checkers.facts import Violation
from orcalike.simulator.exhaustive import explore
from orcalike.simulator.fault_families import FAMILIES, Family, Frame
from orcalike.simulator.fault_matrix import FAULTS, ROLES, Cell, cells, try_cell
from orcalike.simulator.generator import draw
from orcalike.simulator.scenario import MS, Event, Scenario
from orcalike.simulator.shrink import shrink, violation_of
from orcalike.simulator.simulation import Run
from orcalike.simulator.transcript import Transcript
from orcalike.transport import stacks
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.view import View
from orcalike.transport.wire.message import Message
from tests.lib.descriptors import count_files
from tests.lib.ring_scenarios import cells_over_ring, draw_over_ring, over_ring

CHUNK = 25
SEEDS = 75


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_seeds_with_faults_keep_the_promises(first: int, request: pytest.FixtureRequest) -> None:
    """`--seed N` runs seed N alone."""
    seed = request.config.getoption("--seed")
    seeds = range(first, first + CHUNK) if seed is None else [seed] if first == 0 else []
    results = [Run(draw(each)).run() for each in seeds]
    assert all(result.views for result in results)


def test_a_seed_is_one_course_whatever_hashes_are() -> None:
    """I33, G4: no order of a set or of hashes gets into a run, nor does what ran before it."""
    seeds = (2, 3, 8, 12, 21, 34)
    program = (
        "from orcalike.simulator.generator import draw; from orcalike.simulator.simulation import Run\n"
        f"for seed in {seeds}: print(Run(draw(seed)).run().trace)\n"
    )
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = ([Run(draw(seed)).run().trace for seed in seeds] for _ in range(2))
    assert first == second == done.stdout.split()
    assert len(set(first)) == len(seeds)


@pytest.mark.parametrize("seed", range(0, 60, 7))
def test_a_scenario_survives_its_file(seed: int) -> None:
    scenario = draw(seed)
    assert Scenario.from_json(scenario.to_json()) == scenario


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "nonsense",
        '{"version": 1}',
        '{"version": 1, "seed": 1, "size": 1, "safety": 1, "events": [{"do": "explode"}]}',
        '{"version": 1, "seed": 1, "size": 1, "safety": 1, "events": [{"undo": "join"}]}',
        '{"version": 2, "seed": 1, "size": 1, "safety": 1, "events": []}',
    ],
)
def test_what_is_no_scenario_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"scenario|Expecting value"):
        Scenario.from_json(text)


def test_each_kind_of_fault_is_left_out_as_often_as_not() -> None:
    kinds: dict[str, int] = {}
    for seed in range(300):
        for kind in {event.do for event in draw(seed).events}:
            kinds[kind] = kinds.get(kind, 0) + 1
    for kind in scenario_module.FAULTS | {"leave"}:
        assert 45 < kinds[kind] < 260, kind


def test_faults_are_drawn_about_the_limits() -> None:
    """What broke groups was near D: slow members, delays, breaks, restarts, and deaths after them."""
    scenarios = [draw(seed) for seed in range(1_000)]
    assert sum(each.slow < 2 * each.detection for each in scenarios) > 50
    assert sum(each.delays.timeout > 10 * each.detection for each in scenarios) > 50
    jams = [
        event.count / each.detection
        for each in scenarios
        for event in each.events
        if event.do == "jam"
    ]
    assert sum(0.3 < jam < 1 for jam in jams) > 100
    ends = set()
    for each in scenarios:
        kinds = [event.do for event in each.events]
        ends |= {
            (kind, min(kinds.count(kind), 3)) for kind in ("reset", "restart", "break", "half")
        }
    assert len(ends) == 16, "each fault never, once, twice, and more often"


def frame(seed: int) -> Frame:
    """A group of five."""
    rng = Random(seed)
    joins = dict.fromkeys(range(1, 5), 0)
    return Frame(rng, 5, 100 * MS, 200 * MS, 3_000 * MS, False, joins, (500 * MS,))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_each_family_draws_what_a_file_can_hold(family: Family) -> None:
    events = tuple(event for seed in range(20) for event in family(frame(seed)))
    assert events
    scenario = Scenario(1, 5, events, 3_000 * MS)
    assert Scenario.from_json(scenario.to_json()) == scenario
    assert all(event.at >= 0 and event.span >= 0 for event in events)


def test_one_fault_less_leaves_the_rest_as_it_was() -> None:
    """What shrinking needs: until the fault, both runs are the same."""
    scenario = draw(8)
    transcript = Transcript(Run(scenario))
    transcript.run.run()
    fault = max((e for e in scenario.events if e.do not in ("cast", "join")), key=lambda e: e.at)
    rest = [event for event in scenario.events if event is not fault]
    other = Transcript(Run(scenario.with_events(rest)))
    other.run.run()
    before = [str(line) for line in transcript.lines if line.when < fault.at]
    assert before == [str(line) for line in other.lines if line.when < fault.at]
    assert len(before) > 20


def test_a_violation_is_what_is_reported_where_a_stack_handles_a_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stack takes what is raised there for a fault of the sender, and closes the connection."""
    run = Run(draw(8))
    (order,) = [each for each in run.monitor.checkers if each.id == "I1"]

    def deliver(member: int, *_: object) -> None:
        if run.applications[member].total.position > 0:
            order.fail(member, "planted")

    monkeypatch.setattr(run.monitor, "deliver", deliver)
    with pytest.raises(Violation, match=r"I1: .*planted"):
        run.run()


def test_a_transcript_names_what_members_send_about_memory() -> None:
    transcript = Transcript(Run(draw_over_ring(8)))
    transcript.run.run()
    kinds = {line.what.split()[1] for line in transcript.lines if re.match(r"v\d+ ", line.what)}
    assert kinds == {"OFFER", "state"}


def test_a_run_leaves_no_descriptor_open() -> None:
    """A process makes thousands of runs. What shares memory is closed, though the run is still here."""
    before = count_files()
    run = Run(draw_over_ring(8))
    run.run()
    assert len(run.applications) > 1
    assert count_files() == before


# The shrinker, on a bug of its own.


class Lose(Layer):
    """Loses the third cast of each second member, once its view has had three members."""

    name = "LOSE"

    def __init__(self, core: Core, config: object, me: object) -> None:
        super().__init__(core)
        self.seen = self.position = 0
        self.armed = False

    def up_view(self, view: View, cut: bytes) -> None:
        self.position = view.position(self.core.me.incarnation)
        self.armed |= len(view.members) == 3
        self.above.up_view(view, cut)

    def up_cast(self, message: Message) -> None:
        self.seen += 1
        if not (self.armed and self.position == 1 and self.seen == 3):
            self.above.up_cast(message)


@pytest.fixture(autouse=True)
def lose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stack strings know the layer, in these tests."""
    monkeypatch.setattr(stacks, "_LAYERS", dict(stacks._LAYERS))
    stacks.register(Lose)


def losing(seed: int) -> Scenario:
    """A busy group of six whose stack has the bug."""
    events = [Event("join", number * MS, str(number)) for number in range(1, 6)]
    events += [Event("cast", (20 + i) * MS, str(i % 6), degree=i % 2, size=20) for i in range(40)]
    events += [Event("crash", 45 * MS, "5"), Event("pause", 30 * MS, "4", span=90 * MS)]
    events += [Event("break", 35 * MS, "1", "3")]
    stack = "LOSE:XFER:TOTAL:MBRSHIP:COM:sim"
    return Scenario(seed, 6, tuple(events), 3_000 * MS, stack=stack)


def test_a_bug_is_shrunk_to_what_it_needs() -> None:
    scenario = losing(1)
    violation = violation_of(scenario)
    assert violation is not None
    smallest = shrink(scenario, violation.id, keep_stack=True)
    found = violation_of(smallest)
    assert found is not None
    assert found.id == violation.id
    assert smallest.size == 3
    assert sorted(event.do for event in smallest.events) == ["cast"] * 4 + ["join"] * 2


def test_shrinking_accepts_no_other_violation() -> None:
    """A candidate that breaks something else is not smaller, it is another bug."""

    def find_violation(scenario: Scenario) -> Violation | None:
        casts = sum(event.do == "cast" for event in scenario.events)
        return Violation("I1", "much") if casts > 20 else Violation("I2", "less")

    smallest = shrink(losing(1), "I1", find_violation=find_violation)
    assert [event.do for event in smallest.events] == ["cast"] * 21


# Other ways to look for trouble.


def test_all_orders_of_one_write_without_a_crash() -> None:
    explored = explore(3, (Event("cast", 0, "1", degree=1),), crashes=0)
    assert explored.whole
    assert explored.states > 5


def test_orders_of_one_write_and_a_crash() -> None:
    explored = explore(3, (Event("cast", 0, "1", degree=1),), crashes=1, runs_max=300)
    assert explored.states > 300


def test_cells_are_counted() -> None:
    every = list(cells())
    assert len(every) == len(set(every)) == sum(map(len, ROLES.values())) * len(FAULTS)


@pytest.mark.parametrize("step", ROLES)
def test_a_fault_at_each_step(step: str) -> None:
    """The fault really happens at its step, and nothing is broken by it."""
    cell = Cell(step, ROLES[step][0], "kill")
    assert try_cell(cell, range(10)) is not None, cell


IN_MEMORY = [cell for cell in cells_over_ring() if cell.fault == "kill"]


@pytest.mark.parametrize("cell", {cell.step: cell for cell in IN_MEMORY}.values(), ids=str)
def test_a_fault_at_each_step_over_ring(cell: Cell) -> None:
    """The campaign tries all roles and faults (G5)."""
    assert try_cell(cell, range(10), over_ring) is not None, cell


# The command.


def test_simulate_says_what_became_of_a_seed() -> None:
    result = CliRunner().invoke(cli, ["simulate", "--seed", "8"])
    assert result.exit_code == 0, result.output
    assert "seed 8" in result.output
    assert "trace " in result.output


def test_simulate_shrinks_and_saves(tmp_path: pytest.TempPathFactory) -> None:
    path = os.path.join(str(tmp_path), "bad.json")
    with open(path, "w") as file:
        file.write(losing(1).to_json())
    found, diagram = os.path.join(str(tmp_path), "found.json"), os.path.join(str(tmp_path), "d.mmd")
    arguments = ["simulate", "--scenario", path, "--save", found, "--diagram", diagram]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 1, result.output
    assert "broken: I" in result.output
    with open(diagram) as file:
        assert file.readline() == "sequenceDiagram\n"
    with open(found) as file:
        assert Scenario.from_json(file.read()) == losing(1)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--seed", "1", "--seeds", "1..2"],
        ["--seeds", "5..1"],
        ["--seeds", "x"],
        ["--seed", "-1"],
    ],
)
def test_simulate_refuses_what_makes_no_sense(arguments: list[str]) -> None:
    assert CliRunner().invoke(cli, ["simulate", *arguments]).exit_code == 2


def test_simulate_refuses_a_file_that_is_no_scenario(tmp_path: pytest.TempPathFactory) -> None:
    path = os.path.join(str(tmp_path), "x.json")
    with open(path, "w") as file:
        file.write("{}")
    assert CliRunner().invoke(cli, ["simulate", "--scenario", path]).exit_code == 2


def test_a_change_in_a_scenario_is_another_run() -> None:
    scenario = draw(8)
    traces = set()
    for seed in (8, 9):
        run = Run(replace(scenario, seed=seed))
        run.run()
        traces.add(run.world.trace)
    assert len(traces) == 2
