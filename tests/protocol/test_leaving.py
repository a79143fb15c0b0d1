"""A member that leaves is notified that it has left, in whatever order the messages of the others come (A09)."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest

from orcalike.transport.config import StackConfig
from tests.lib.manual_network import ManualNetwork

HELD_UP = StackConfig("group").detection // 5 + 1
"""After so long a member that waits for others says so to all of them."""
STACKS = ("XFER:RING:MBRSHIP:COM:sim", "XFER:ORDER:MBRSHIP:COM:sim")
"""Those in which it does."""
SEEDS = 100
STEPS = 300
"""So many of them are enough for three leaves, as a rule."""


def group(names: str, stack: str) -> ManualNetwork:
    """A group of these, at rest."""
    network = ManualNetwork(stack)
    network.monitor = (
        None  # it knows which have promised a change of view by a leave alone, and in that view
    )
    network.form(names)
    return network


def pass_time(network: ManualNetwork) -> None:
    """Those that wait for others say so; all beat, and no message arrives."""
    network.now += HELD_UP
    network.expire(list(network.endpoints), list(network.endpoints))


def gone_on(stack: str) -> ManualNetwork:
    """b leaves, and has said to c that it is held up; c has seen it leave before that came, and b has no word of a's."""
    network = group("a b c", stack)
    network.leave("b")
    pass_time(network)
    pass_time(network)
    while network.members("a") == "a b c":
        for one, other in ("ab", "ac", "ba", "ca"):
            if network.members("a") == "a b c":
                network.deliver(one, other)
    network.deliver("a", "c", 99)
    network.lines()
    network.deliver("b", "c", 99)
    network.deliver("c", "b", 99)
    assert "c->b EXPELLED" in network.lines()
    return network


@pytest.mark.parametrize("stack", STACKS)
def test_a_member_of_the_next_view_is_faster_than_the_one_that_leads(stack: str) -> None:
    """Found as a child of `group.fork` that was said to be expelled, on a loaded machine."""
    network = gone_on(stack)
    assert network["b"].exited is None
    network.stabilize()
    assert network["b"].exited == "left"


@pytest.mark.parametrize("stack", STACKS)
def test_the_one_that_leads_has_ended_before_it_has_said_so(stack: str) -> None:
    """What another one has said is all that the leaver will have."""
    network = gone_on(stack)
    network.break_links("a", "b")
    network.stabilize()
    assert network["b"].exited == "expelled: view 4 of 2 members went on without this member"


@pytest.mark.parametrize("stack", STACKS)
def test_a_member_that_leaves_and_was_not_asked_is_expelled(stack: str) -> None:
    """The others went on without its report: they had no link to it."""
    network = group("a b c", stack)
    network.break_links("a", "c")
    network.break_links("b", "c")
    network.leave("c")
    for _ in range(20):
        network.deliver("a", "b", 99)
        network.deliver("b", "a", 99)
    assert network.members("a") == network.members("b") == "a b"
    assert network["c"].exited is None
    for _ in range(20):
        pass_time(network)
        network.stabilize()
    why = (
        ": nothing was heard of it" if "TOTAL" in stack else ""
    )  # by shared memory it is not suspected
    assert str(network["c"].exited).endswith(f"went on without this member{why}")


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_all_leave_but_one_while_messages_come_in_any_order(stack: str, seed: int) -> None:
    rng = Random(seed)
    network = group("a b c d", stack)
    leavers = rng.sample("abcd", 3)
    still, pairs = list(leavers), list(permutations("abcd", 2))
    for _ in range(STEPS):
        if still and rng.random() < 0.05:
            network.leave(still.pop())
        if rng.random() < 0.05:
            pass_time(network)
        network.deliver(*rng.choice(pairs))
    network.stabilize()
    assert [network[name].exited for name in leavers] == ["left"] * 3
    [last] = set("abcd").difference(leavers)
    assert network[last].exited is None
