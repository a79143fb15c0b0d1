"""Schedules by name: each breaks a group whose core lacks one detail, and only such a group.

Four of them lose an acknowledged write, or the whole group, if a detail of H12 is missing; two
make two primaries, or forget what was acknowledged, if one of H1 is (docs/internals/decisions).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import pytest

from orcalike.simulator.scenario import MS, Event, Scenario
from orcalike.simulator.simulation import Run
from orcalike.transport.drivers.sim import Delays

D = 100 * MS
START = 20 * D
"""All have joined by then."""
STACK = "XFER:TOTAL:MBRSHIP:COM:sim"


def scenario(
    size: int,
    events: Iterable[Event],
    *,
    one_host: Iterable[int] = (),
    delay: int = MS // 10,
    more: int = 0,
) -> Scenario:
    """A group of so many, each frame taking the same time, and what happens from START on.

    Members of `one_host` see each other die (H13), and nothing between them is cut. So many `more`
    processes join by events of their own.
    """
    joins = [Event("join", 2 * number * D, str(number)) for number in range(1, size)]
    near = set(one_host)
    hosts = (
        tuple(0 if number in near else number + 1 for number in range(size + more)) if near else ()
    )
    return Scenario(
        seed=1,
        size=size + more,
        events=(*joins, *events),
        safety=START + 30 * D,
        stack=STACK,
        hosts=hosts,
        delays=Delays(delay, 0, delay, 0, D),
        detection=D,
    )


def cuts(at: int, side: str, other: str) -> list[Event]:
    """Nothing gets from one side to the other, either way."""
    pairs = [pair for one in side for two in other for pair in ((one, two), (two, one))]
    return [Event("cut", at, source, target) for source, target in pairs]


def acknowledging_the_old_sequencer() -> Scenario:
    """H12 a: 0 sleeps for D. 2 has promised 1 when it receives from 0 again, which asks for a holder.

    If 2 says that it holds the cast, it is accepted by 0, and in no view after that.
    """
    return scenario(
        3,
        [
            Event("cut", START, "0", "1"),
            Event("lag", START, "1", "0", 120 * MS),
            Event("pause", START + 1, "0", span=D * 155 // 100),
            Event("cast", START + D * 156 // 100, "0", degree=1),
        ],
        delay=20 * MS,
    )


def accepting_by_number() -> Scenario:
    """H12 b: the cast that 0 died of reached 1 alone. 1 lets 2 accept the view, and dies as well.

    If 2 had no need of the cast to accept, it cannot have the cut of what was decided.
    """
    return scenario(
        3,
        [
            Event("crash", START, "0", keep=1),
            Event("cast", START + 1, "0"),
            Event("crash", START + 1, mark="V7", keep=0),
        ],
        one_host=range(3),
    )


def delivering_with_the_view() -> Scenario:
    """H12 c: n=4, r=2; 3 is dead, and the cast of 0 reaches 1, but not 2, which is cut off.

    0 and 1 decide the next view. If that is reason enough to deliver the cast, two hold what three
    must; both die then, and 2 knows nothing of it.
    """
    return scenario(
        4,
        [
            Event("crash", START, "3"),
            Event("isolate", START + 1, "2", span=4 * D),
            Event("cast", START + 2, "0", degree=2),
            Event("crash", START, "0", mark="V8", keep=2),
            Event("crash", START, "1", mark="V9", keep=0),
        ],
    )


def frozen_by_a_dead_leader() -> Scenario:
    """H12 d: 4 dies; 0 has asked all others to promise, and dies before it proposes.

    If they wait for 0, they wait for good.
    """
    return scenario(
        5,
        [
            Event("crash", START, "4"),
            Event("crash", START, "0", mark="V4", keep=0),
            Event("cast", START + 2 * D, "2", degree=1),
        ],
    )


def two_primaries() -> Scenario:
    """H1: 0 and 2 go on without 1, then 0 dies, which 1 sees. 2 is primary, so 1 must not be."""
    return scenario(
        3,
        [
            *cuts(START, "1", "2"),
            Event("pause", START, "1", span=4 * D),
            Event("crash", START + 3 * D, "0"),
        ],
        one_host=(0, 1),
    )


def cut_off_with_all_holders() -> Scenario:
    """H1: n=5, r=1. 0 and 1 hold a write, and are cut off from the others; no member dies."""
    return scenario(
        5,
        [
            *cuts(START, "01", "234"),
            Event("cast", START + MS, "0", degree=1),
            Event("cast", START + 4 * D, "2", degree=1),
        ],
    )


def away_while_the_others_died() -> Scenario:
    """H1: 1 sleeps while 0 and 2 go on and let 3 in; then both die, which 1 sees when it wakes.

    No member that 1 knows is missing, but 3 is in a later view, and lives.
    """
    return scenario(
        3,
        [
            *cuts(START, "1", "3"),
            Event("pause", START, "1", span=8 * D),
            Event("join", START + 3 * D, "3"),
            Event("crash", START + 6 * D, "0"),
            Event("crash", START + 6 * D, "2"),
        ],
        one_host=range(3),
        more=1,
    )


def word_of_a_lost_host() -> Scenario:
    """H13: the host of 0 is cut off, and the launcher says on 1's that 0 is gone; both live.

    0 is half with the oldest, and goes on. If 1 were certain of its death, so would 1.
    """
    return replace(
        scenario(2, [*cuts(START, "0", "1"), Event("gone", START + MS, "0")]), hosts=(0, 1)
    )


def word_before_last_words() -> Scenario:
    """H13: 0 loses its link to 1, goes on alone and lets 2 in, and is killed; the word of that is first at 1.

    What 0 had sent to 1, that it is out, is still under way.
    """
    joined = START + D // 2
    return replace(
        scenario(
            2,
            [
                Event("half", START, "0", "1"),
                Event("clog", START, "0", "1", span=10 * D),
                Event("join", START + D // 20, "2"),
                Event("crash", joined, "0", way="word"),
                Event("cast", joined + D, "1"),
                Event("cast", joined + D, "2"),
            ],
            more=1,
        ),
        hosts=(0, 1, 2),
    )


def dying_while_it_gives() -> Scenario:
    """0 gives its state to 5 in more pieces than it sends at once, and dies before one is acknowledged.

    If no other gives in its place, 5 waits for the rest for good.
    """
    joined = START + D
    return replace(
        scenario(
            5,
            [
                *(Event("cast", START, str(number)) for number in range(5)),
                Event("lag", START, "0", "5", D // 2),
                Event("join", joined, "5"),
                Event("crash", joined + 5 * MS, "0"),
            ],
            more=1,
        ),
        piece=1,
    )


SCHEDULES = (
    acknowledging_the_old_sequencer,
    accepting_by_number,
    delivering_with_the_view,
    frozen_by_a_dead_leader,
    two_primaries,
    away_while_the_others_died,
    cut_off_with_all_holders,
    word_of_a_lost_host,
    word_before_last_words,
    dying_while_it_gives,
)
"""Each is what shows a mutant in which the detail is missing (tests/campaign/mutants)."""


@pytest.mark.parametrize("make", SCHEDULES, ids=lambda make: make.__name__)
def test_the_core_survives_it(make: partial[Scenario]) -> None:
    result = Run(make()).run()
    marked = [event for event in make().events if event.mark]
    assert len(result.fired) == len(marked), "every fault at a step really happened"
