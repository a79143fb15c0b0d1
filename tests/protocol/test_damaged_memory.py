"""A word of the order in shared memory is overwritten while a group runs: its members go on rightly, or say which word."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable

import pytest

from orcalike.transport.drivers.descriptors import ORDER
from orcalike.transport.errors import DamagedMemory
from tests.lib.damaged_memory import WORDS, DamagedRun, place_of
from tests.lib.manual_network import ManualNetwork
from tests.lib.ring_scenarios import STACK

SEEDS = 12
CHECKED = sorted(set(WORDS) - {"interest", "left_out"})
"""Words of a row in which each change is damage."""
STRUCK = 3
SLOTS = 64
"""As the stack has."""


@pytest.mark.parametrize("word", [*WORDS, "slot"])
def test_members_go_on_rightly_or_name_the_damage(word: str) -> None:
    delivered, errors = 0, list[str]()
    for seed in range(SEEDS):
        run = DamagedRun(seed, (word,))
        delivered += run.run().delivered
        errors += run.errors
    assert delivered > 10 * SEEDS
    for each in errors:
        assert re.match(r"(slot|the word '\w+' of row) \d+ of the order .* cannot be: ", each)
    assert errors or word not in CHECKED


def group() -> ManualNetwork:
    """A group of three, at rest."""
    network = ManualNetwork(STACK)
    network.form("a b c")
    network.lines()
    return network


def overwrite(network: ManualNetwork, row: int, word: str, change: Callable[[int], int]) -> None:
    """Damage a word of a row; the n-th member has the n-th one."""
    order = network.descriptors.open(1, (ORDER, 0), os.O_RDWR)
    with mmap.mmap(order, 0) as memory:
        os.close(order)
        at, size = place_of(memory, SLOTS, row, word)
        found = int.from_bytes(memory[at : at + size], "little")
        memory[at : at + size] = change(found).to_bytes(size, "little")


def let_time_pass(network: ManualNetwork) -> None:
    """Until members have said thrice what they have not been answered."""
    for _ in range(20):
        network.now += 100_000_000
        network.expire(network.endpoints, network.endpoints)
        network.stabilize()


@pytest.mark.parametrize("word", CHECKED)
def test_a_damaged_row_is_not_taken_for_a_fault_of_the_member_that_sends(word: str) -> None:
    """Its holder ends; it would refuse the link by which the others end the view, and they would be put out."""
    network = group()
    overwrite(network, 1, word, lambda found: found ^ 4)
    network.leave("c")
    with pytest.raises(DamagedMemory, match=f"the word {word!r} of row 1 "):
        network.stabilize()
    assert not [line for line in network.lines() if "refused" in line]


@pytest.mark.parametrize("word", CHECKED)
def test_a_member_that_is_woken_without_news_looks_at_its_row(word: str) -> None:
    network = group()
    overwrite(network, 1, word, lambda found: found ^ 4)
    with pytest.raises(DamagedMemory, match=f"the word {word!r} of row 1 "):
        network.call("b", network.endpoints["b"].stack.woken)


def test_a_member_that_writes_on_finds_another_position_than_its_own() -> None:
    """As it says how far it is, whether or not it is ever without news."""
    network = group()
    overwrite(network, 1, "applied", lambda found: found + 1000)
    with pytest.raises(DamagedMemory, match="the word 'applied' of row 1 "):
        network.cast("b", b"one")


def test_a_member_that_is_struck_and_in_the_next_view_blames_the_memory() -> None:
    """Not the others, which have not expelled it: it asks them, and they go on with it."""
    network = group()
    overwrite(network, 1, "state", lambda found: found | STRUCK)
    network.call("b", network.endpoints["b"].stack.woken)
    with pytest.raises(DamagedMemory, match=r"'state' of row 1 .* view 4 has it"):
        let_time_pass(network)


def test_a_joiner_that_never_gets_its_row_says_why_it_cannot_join() -> None:
    """A later member seems to have it: if that were so, the others would tell it soon that it is out."""
    network = group()
    overwrite(network, 3, "state", lambda found: 1000 << 10)
    network.add("d")
    network.join("d", "a")
    network.stabilize()
    let_time_pass(network)
    [why] = network["d"].denied
    assert "the word 'state' of row 3 cannot be" in why
