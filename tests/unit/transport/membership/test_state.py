"""The states of the agreement on views: their tables, and the page that is drawn from them."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import pytest

from orcalike.simulator.state_diagrams import page
from orcalike.transport.membership.effects import Changed, Effect
from orcalike.transport.membership.state import (
    BOOTSTRAP,
    COORDINATOR,
    PARTICIPANT,
    BootstrapCause,
    BootstrapState,
    CoordinatorCause,
    CoordinatorState,
    Machine,
    ParticipantCause,
    ParticipantState,
    diagram,
)

ROOT = next(path for path in Path(__file__).parents if (path / "pyproject.toml").exists())


def test_the_page_is_as_the_tables_are() -> None:
    """Else: python -m orcalike.simulator.state_diagrams docs/internals/states.md"""
    assert (ROOT / "docs" / "internals" / "states.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(
    ("table", "states", "causes"),
    [
        (PARTICIPANT, ParticipantState, ParticipantCause),
        (COORDINATOR, CoordinatorState, CoordinatorCause),
        (BOOTSTRAP, BootstrapState, BootstrapCause),
    ],
    ids=["participant", "coordinator", "bootstrap"],
)
def test_each_state_can_be_reached_and_left_and_each_cause_counts(
    table: dict[Enum, dict[Enum, Enum]], states: type[Enum], causes: type[Enum]
) -> None:
    assert set(table) == set(states)
    reached, todo = set[Enum](), [next(iter(table))]
    while todo:
        state = todo.pop()
        if state not in reached:
            reached.add(state)
            todo += table[state].values()
    assert reached == set(states)
    assert {cause for changes in table.values() for cause in changes} == set(causes)


def test_a_change_is_an_effect() -> None:
    out: list[Effect] = []
    machine = Machine("participant", ParticipantState.NORMAL, PARTICIPANT, out)
    machine.change(ParticipantCause.PROMISED)
    machine.change(ParticipantCause.PROMISED)
    assert out == [Changed("participant", "NORMAL", "PROMISED", "FROZEN")]
    assert machine.state is ParticipantState.FROZEN


def test_an_impossible_change_is_an_error_of_our_own() -> None:
    machine = Machine("coordinator", CoordinatorState.IDLE, COORDINATOR, [])
    with pytest.raises(RuntimeError, match="coordinator IDLE: there is no AGREED"):
        machine.change(CoordinatorCause.AGREED)
    assert machine.state is CoordinatorState.IDLE


def test_a_diagram_has_an_arrow_for_each_change() -> None:
    lines = diagram(COORDINATOR).splitlines()
    assert lines[:2] == ["stateDiagram-v2", "    [*] --> IDLE"]
    assert len(lines) == 2 + sum(len(changes) for changes in COORDINATOR.values())
