"""A large message is cut above the order: others wait for a part of it only, and joiners lose none."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.lib.shared_classes import Counter
from tests.protocol.sim_runtime import Participant
from tests.protocol.test_large_states import Bulk, transfer_of
from tests.protocol.test_runtime_sim import Stage, replica_of

STACK = "PACK(fragment=50):XFER:TOTAL:MBRSHIP:COM:sim"
LARGE = bytes(range(256)) * 40


def partials(participant: Participant) -> int:
    layer = participant.stack.focus("PACK")
    assert layer is not None
    return layer.dump()["partial"]  # type: ignore[return-value]


def stage_of(size: int, admitted: int) -> tuple[Stage, Any, Any]:
    """A stage, and what the second of its members has of two objects."""
    stage = Stage(size, stack=STACK)
    stage.share(stage.participants[0], Bulk, "bulk")
    stage.share(stage.participants[0], Counter, "counter")
    for number in range(1, admitted):
        stage.admit(number)
    second = stage.participants[1]
    bulk = stage.find(second, Bulk, "bulk").result()
    return stage, bulk, stage.find(stage.participants[2], Counter, "counter")


def begin(stage: Stage, bulk: Any) -> Any:
    """Have the second member send a large message; it is under way."""
    large = bulk.put.nowait(LARGE)
    stage.world.run(lambda: partials(stage.participants[0]) > 0)
    return large


def test_a_small_message_passes_a_large_one_of_another_member() -> None:
    stage, bulk, found = stage_of(3, 3)
    counter = found.result()
    large = begin(stage, bulk)
    small = counter.add.nowait(1)
    stage.world.run(lambda: small.done())
    assert not large.done()
    stage.settle()
    assert large.result() == 1
    assert len(stage.held("bulk")) == len(stage.held("counter")) == 1
    assert not any(partials(participant) for participant in stage.participants)
    assert bulk.parts == [LARGE]


@pytest.mark.parametrize("events", range(0, 90, 9))
def test_a_joiner_gets_what_has_come_of_a_large_message(events: int) -> None:
    stage, bulk, _ = stage_of(4, 3)
    large = begin(stage, bulk)
    third = stage.participants[3]
    until = stage.world.events + events
    stage.world.run(lambda: stage.world.events >= until)
    stage._join(third, stage.participants[0].node.address)
    stage.settle()
    stage.settle()
    assert large.result() == 1
    assert third.inside
    assert not third.faults
    assert len(stage.held("bulk")) == 1
    assert not any(partials(participant) for participant in stage.participants)


def test_of_a_sender_that_dies_midway_nothing_stays() -> None:
    stage, bulk, found = stage_of(3, 3)
    counter = found.result()
    large = begin(stage, bulk)
    stage.world.at(stage.world.now, partial(stage.world.stop, stage.participants[1].node))
    for _ in range(6):
        stage.settle()
    assert not large.done()
    added = counter.add.nowait(1)
    stage.settle()
    assert added.done()
    first, _, third = stage.participants
    states = {
        participant.runtime.digest_of(replica_of(participant, "bulk"))
        for participant in (first, third)
    }
    assert len(states) == 1
    assert not partials(first)
    assert not partials(third)
    assert transfer_of(third)["complete"]
