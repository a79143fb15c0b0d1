"""`orcalike simulate`: groups in the simulator, with faults, and all invariants checked."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orcalike.cli.common import Integer, OutputFile, Refusal
from orcalike.transport.wording import counted

if TYPE_CHECKING:
    from orcalike.simulator.scenario import Scenario
    from orcalike.simulator.simulation import Result

SHOWN_EACH = 2.0
"""Seconds between two lines of progress."""


class Seeds(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A range of seeds: `0..1000`, both included."""

    name = "A..B"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        """The range."""
        match = re.fullmatch(r"(\d+)\.\.(\d+)", str(value))
        if match is None or int(match[1]) > int(match[2]):
            self.fail(f"{value!r} is not a range of seeds such as 0..1000", param, ctx)
        return range(int(match[1]), int(match[2]) + 1)


@click.command(short_help="Run groups in the simulator, with faults.")
@click.option("--seed", type=Integer(min=0), help="Run this seed.")
@click.option("--seeds", type=Seeds(), help="Run these seeds, until one fails.")
@click.option(
    "--scenario",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run the scenario in this file.",
)
@click.option("--shrink", is_flag=True, help="Make a scenario that fails as small as it gets.")
@click.option(
    "--save",
    type=OutputFile(),
    help="Write the scenario to this file.",
)
@click.option(
    "--diagram",
    type=OutputFile(),
    help="Write a sequence diagram (Mermaid) to this file.",
)
@click.option("--story", is_flag=True, help="Print what happens, line by line.")
def simulate(
    seed: int | None,
    seeds: range | None,
    scenario: Path | None,
    shrink: bool,
    save: Path | None,
    diagram: Path | None,
    story: bool,
) -> None:
    """Run groups in the simulator, with faults, and check every invariant at each step.

    A seed stands for a group, its stack, and all that happens to it: the same seed is the same
    run. Exit code 1 if an invariant is broken.

    \b
    orcalike simulate --seed 42
    orcalike simulate --seeds 0..999
    orcalike simulate --seed 42 --shrink --save found.json --diagram found.mmd
    orcalike simulate --scenario found.json --story
    """
    if sum(given is not None for given in (seed, seeds, scenario)) != 1:
        raise click.UsageError("give one of --seed, --seeds and --scenario")
    from orcalike.simulator.generator import draw

    if scenario is not None:
        chosen = _read(scenario)
    elif seed is not None:
        chosen = draw(seed)
    else:
        assert seeds is not None
        failed = _first_that_fails(seeds)
        if failed is None:
            return
        chosen = failed
    violated = _violation_id(chosen)
    if shrink and violated is not None:
        chosen = _shrink(chosen, violated)
    if save is not None:
        save.write_text(chosen.to_json())
        click.echo(f"the scenario is in {save}", err=True)
    if not _run(chosen, diagram, story):
        raise click.exceptions.Exit(1)


def _read(path: Path) -> Scenario:
    from orcalike.simulator.scenario import Scenario

    try:
        return Scenario.from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refusal(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise Refusal(f"{path}: no scenario: {error}") from None
    except ValueError as error:
        raise Refusal(f"{path}: {error}") from None


def _progress() -> Iterator[bool]:
    """Whether it is time for a line of progress, on a terminal."""
    shown = time.monotonic()
    while True:
        due = sys.stderr.isatty() and time.monotonic() - shown >= SHOWN_EACH
        if due:
            shown = time.monotonic()
        yield due


def _first_that_fails(seeds: range) -> Scenario | None:
    """Run seeds until one fails; None if all are well, and say so."""
    from orcalike.simulator.checkers.facts import Violation
    from orcalike.simulator.generator import draw
    from orcalike.simulator.simulation import Run

    steps = simulated = blocked = 0
    started = time.monotonic()
    for seed, due in zip(seeds, _progress(), strict=False):
        try:
            result = Run(draw(seed)).run()
        except Violation:
            return draw(seed)
        steps += result.steps
        simulated += result.simulated
        blocked += result.blocked
        if due:
            click.echo(
                f"{seed - seeds[0] + 1} of {counted(len(seeds), 'seed')}, {counted(steps, 'step')}",
                err=True,
            )
    took = max(time.monotonic() - started, 0.001)
    click.echo(
        f"{counted(len(seeds), 'seed')}, {counted(steps, 'step')} ({steps / took:,.0f} a second), "
        f"{simulated / 3.6e12:.2f} simulated hours; {counted(blocked, 'group')} ended blocked, as must be; "
        "no invariant was broken"
    )
    return None


def _violation_id(scenario: Scenario) -> str | None:
    from orcalike.simulator.shrink import violation_of

    violation = violation_of(scenario)
    return None if violation is None else violation.id


def _shrink(scenario: Scenario, id_: str) -> Scenario:
    """The smallest scenario that breaks the same invariant."""
    from orcalike.simulator.shrink import shrink

    turns = _progress()

    def progress(smaller: Scenario, tries: int) -> None:
        if next(turns):
            click.echo(
                f"{counted(len(smaller.events), 'event')} left after {counted(tries, 'try', 'tries')}",
                err=True,
            )

    smallest = shrink(scenario, id_, progress=progress)
    click.echo(
        f"shrunk from {counted(len(scenario.events), 'event')} to {len(smallest.events)}", err=True
    )
    return smallest


def _run(scenario: Scenario, diagram: Path | None, story: bool) -> bool:
    """Run it, show what was asked for, and print how it ended; False if it failed."""
    from orcalike.simulator.checkers.facts import Violation
    from orcalike.simulator.simulation import Run
    from orcalike.simulator.transcript import Transcript

    run = Run(scenario)
    transcript = Transcript(run) if story or diagram is not None else None
    failed: Violation | None = None
    result: Result | None = None
    try:
        result = run.run()
    except Violation as violation:
        failed = violation
    if transcript is not None and story:
        for line in transcript.lines:
            click.echo(str(line))
    if transcript is not None and diagram is not None:
        diagram.write_text(transcript.diagram())
        click.echo(f"the diagram is in {diagram}", err=True)
    click.echo(str(scenario))
    if result is None:
        assert failed is not None
        for event in scenario.events:
            click.echo(f"  {event}")
        click.echo(f"broken: {failed}")
        click.echo(f"trace {run.world.trace}")
        return False
    end = "it ended blocked, as it must" if result.blocked else "it recovered"
    click.echo(
        f"{end}: {counted(result.delivered, 'delivery', 'deliveries')}, "
        f"{counted(result.views, 'view')}, {counted(result.steps, 'step')}, "
        f"{result.simulated / 1e9:.3f} simulated seconds"
    )
    click.echo(f"trace {result.trace}")
    return True
