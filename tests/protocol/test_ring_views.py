"""How a view begins over RING: each member says in memory that it has, and appends when all have."""

from __future__ import annotations

import itertools
import mmap
import os
from collections.abc import Callable

import pytest

from orcalike.simulator.transcript import KINDS_IN_MEMORY, describe
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.descriptors import ORDER
from orcalike.transport.errors import DamagedMemory
from orcalike.transport.ring.fence import VIEWS_MAX, fence_of, first_rows
from orcalike.transport.view import View
from tests.lib.manual_network import ManualNetwork
from tests.protocol.test_ring_layer import bodies, group, let_time_pass, stabilize_without

NUMBERS = [
    1_048_571,
    2_200_000,
    *range(4_194_299, 4_194_305),
    *range((1 << 30) - 5, (1 << 30) + 2),
]
"""Of views: some are 0 in the bits that the memory has for them, or it takes them for earlier ones."""

READS_ALL = 1 << 31
"""In the word that says which view a row's holder has begun, before its number (transport/ring/layout.h)."""


def group_of_which_c_has_not_begun_the_view() -> ManualNetwork:
    """Members a, b and c, after d has left: the message to c that says so is on its way."""
    network = group("a b c d")
    network.leave("d")
    at = network["a"].installed
    while network["b"].installed == at:
        for one, other in itertools.permutations("abd", 2):
            network.deliver(one, other, 1)
        if network["a"].installed == at:
            network.deliver("a", "c", 1)
            network.deliver("c", "a", 1)
    assert network["c"].installed == at
    return network


def first_written_after(network: ManualNetwork, body: bytes, deliver: Callable[[], None]) -> int:
    """After how many detection times b has what a waits to write; c answers nothing, and beats."""
    config = StackConfig("group", {})
    for tick in range(2 * config.slow // config.detection):
        if body in bodies(network, "b"):
            return tick
        network.now += config.detection
        network.expire("abd", network.endpoints)
        deliver()
    raise AssertionError("never")


def test_nothing_is_in_the_order_that_a_member_of_the_view_cannot_deliver_yet() -> None:
    """A read of a member that has not begun the view would not see it, though the write has returned."""
    network = group("a b c d")
    network.leave("d")
    at = network["a"].installed
    while network["a"].installed == at:
        for one, other in itertools.permutations("abcd", 2):
            network.deliver(one, other, 1)
    network.deliver("a", "b", 9)
    assert network["b"].installed == network["a"].installed != at
    assert network["c"].installed == at, "it does not know of it"
    network.cast("b", b"in the next view")
    network.deliver("b", "a", 9)
    network.deliver("a", "b", 9)
    assert b"in the next view" not in bodies(network, "a")
    network.stabilize()
    for name in "abc":
        assert bodies(network, name)[-1] == b"in the next view"


def test_the_last_one_to_begin_a_view_has_the_others_go_on() -> None:
    """Nothing is sent then, and no time passes: a packet of another member is in the order at once."""
    network = group_of_which_c_has_not_begun_the_view()
    at = network["c"].installed
    network.cast("b", b"in the next view")
    assert b"in the next view" not in bodies(network, "b")
    network.deliver("a", "c", 9)
    assert network["c"].installed != at
    assert bodies(network, "b") == bodies(network, "c") == [b"in the next view"]


def test_a_member_that_the_others_go_on_without_is_woken() -> None:
    """It finds in memory that its view is over, though no message says so, and will ask what comes next."""
    network = group()
    network.asleep = {"c"}
    for name in "ab":
        network.lose_end(name, "c")
    stack = network.endpoints["c"].stack
    layer = stack.focus("RING")
    assert layer is not None
    network.call("c", stack.rung)  # by what was written before
    let_time_pass(network, ["ab"])
    assert layer.dump()["at fence"] is False
    network.call("c", stack.rung)
    assert layer.dump()["at fence"] is True


def test_one_whose_alarm_was_taken_and_not_rung_looks_again() -> None:
    """The member that was to wake it has ended in between, and was not in the view: no other view follows."""
    network = group()
    network.asleep = {"b"}
    network.cast("a", b"rung for by none")
    assert b"rung for by none" not in bodies(network, "b")
    stack = network.endpoints["b"].stack
    assert stack.deadline is not None
    network.now += 5_000_000_000
    network.call("b", stack.expire)
    assert bodies(network, "b") == [b"rung for by none"]


def test_the_time_to_offer_memory_again_lets_packets_go() -> None:
    """The last one to begin the view has lost its processor before it woke the others."""
    network = group_of_which_c_has_not_begun_the_view()
    at = network["c"].installed
    network.cast("b", b"in the next view")
    network.asleep = {"a", "b"}
    network.deliver("a", "c", 9)
    assert network["c"].installed != at
    assert bodies(network, "b") == []
    network.now += StackConfig("group", {}).detection
    network.expire("b", network.endpoints)
    assert bodies(network, "b") == [b"in the next view"]


def test_memory_is_offered_once() -> None:
    """As a view begins, those that have mapped each other's memory say that in it, and send nothing."""
    network = group("a b c d")
    network.leave("d")
    said: list[str] = []
    while any(network.frames(one) for one in "abcd"):
        for one, other in itertools.permutations("abcd", 2):
            said += [describe(each, None, KINDS_IN_MEMORY) for each in network.frames(one)[:1]]
            network.deliver(one, other, 1)
    assert any("INSTALL" in text for text in said)
    assert not [text for text in said if text.startswith("v")]
    network.cast("c", b"at once")
    for name in "abc":
        assert bodies(network, name)[-1] == b"at once"


def test_writers_go_on_without_a_member_that_does_not_begin_the_view() -> None:
    """It lives, and answers no more: what is written waits for `slow`, and not for good (F17)."""
    network = group("a b c")
    network.add("d")
    network.join("d", "a")
    while len(network["a"].installed.members) < 4:  # type: ignore[union-attr]
        for one, other in itertools.permutations(network.endpoints, 2):
            if len(network["a"].installed.members) < 4:  # type: ignore[union-attr]
                network.deliver(one, other)
    stabilize_without(network, "c")
    assert len(network["c"].installed.members) == 3  # type: ignore[union-attr]
    network.cast("a", b"it waits")
    config = StackConfig("group", {})
    ticks = first_written_after(network, b"it waits", lambda: stabilize_without(network, "c"))
    assert ticks == config.slow // config.detection
    assert [member.address for member in network["d"].installed.members] == [  # type: ignore[union-attr]
        f"sim:{name}" for name in "abd"
    ]


def settle_but(network: ManualNetwork, silent: str) -> None:
    """Deliver all, but by these links, as `cd` from c to d."""
    links = ["".join(pair) for pair in itertools.permutations("abcd", 2)]
    while sum(network.deliver(*link) for link in links if link not in silent.split()):
        pass


def group_with_silent_links(silent: str) -> ManualNetwork:
    """Members a to d, which all have begun their view, with a write of a that waits."""
    network = group("a b c")
    network.add("d")
    network.join("d", "a")
    settle_but(network, silent)
    assert all(len(network[name].installed.members) == 4 for name in "abcd")  # type: ignore[union-attr]
    network.cast("a", b"it waits")
    return network


def test_writers_go_on_without_members_that_do_not_map_each_others_memory() -> None:
    """They have begun the view, and their link carries nothing: they are out after `slow`."""
    network = group_with_silent_links("dc")
    config = StackConfig("group", {})
    ticks = first_written_after(network, b"it waits", lambda: settle_but(network, "dc"))
    assert ticks == config.slow // config.detection
    assert [member.address for member in network["a"].installed.members] == ["sim:a", "sim:b"]  # type: ignore[union-attr]


@pytest.mark.parametrize("silent", ["cd dc", "cd"])
def test_of_two_without_a_link_the_younger_leaves(silent: str) -> None:
    """Before the others go on without both: it cannot read what the older may append, and says why."""
    network = group_with_silent_links(silent)
    config = StackConfig("group", {})
    ticks = first_written_after(network, b"it waits", lambda: settle_but(network, silent))
    assert ticks < config.slow // config.detection
    view = network["a"].installed
    assert view is not None
    assert [member.address for member in view.members] == ["sim:a", "sim:b", "sim:c"]
    assert "no link to " in network["d"].denied[0]


def test_one_that_alone_cannot_read_what_others_append_does_not_wait_for_good() -> None:
    """Its link to c stands, and carries nothing; all others have mapped all memory, and have nothing to write."""
    network = group("a b c")
    network.add("d")
    network.join("d", "a")
    settle_but(network, "cd")
    network.deliver("c", "d")  # its greeting
    settle_but(network, "cd")
    network.cast("d", b"it waits")
    config = StackConfig("group", {})
    for _ in range(2 * config.slow // config.detection):
        network.now += config.detection
        network.expire("abcd", network.endpoints)
        settle_but(network, "cd")
    assert "the memory of rank 2 (sim:c) cannot be mapped" in network["d"].denied[0]
    assert network.members("a") == network.members("c") == "a b c"


def test_one_that_has_reported_that_it_has_nothing_takes_no_order_until_the_next_view() -> None:
    """Its report says so: if it led the change of view, what it had by then would be taken for where the view ends."""
    network = group("a b c")
    network.add("d")
    network.join("d", "a")
    while network["d"].installed is None:
        for one, other in itertools.permutations("abc", 2):
            network.deliver(one, other, 9)
        network.deliver("d", "a")
        network.deliver("a", "d")
    network.endpoints["a"].queues[
        network.link("a", "d")
    ].clear()  # its memory, as if it could not be had
    network.leave("c")
    network.deliver("c", "a")
    network.deliver("a", "d")
    d = network.endpoints["d"].stack
    assert d.dump()["RING"]["attached"] is False
    for _ in range(9):
        network.deliver("d", "b")
        network.deliver("b", "d")
    assert any("b->d 28 bytes" in line for line in network.lines()), "its memory"
    assert d.dump()["RING"]["attached"] is False
    network.stabilize()
    assert network.members("d") == "a b d"
    network.cast("d", b"from d")
    network.stabilize()
    assert bodies(network, "a")[-1:] == bodies(network, "d")[-1:] == [b"from d"]


def test_a_word_of_a_later_member_in_the_own_row_is_an_error_that_says_so() -> None:
    """Else the others would wait for this member, and put it out, and none would know why."""
    network = group()
    view = network["a"].installed
    assert view is not None
    order = network.descriptors.open(view.members[0].incarnation, (ORDER, 0), os.O_RDWR)
    with mmap.mmap(order, 0) as memory, memoryview(memory).cast("Q") as words:
        begun = next(
            at for at, word in enumerate(words) if word & 0xFFFFFFFF == READS_ALL | view.number
        )
        words[begun] += 1 << 32
    os.close(order)
    network.leave("c")
    with pytest.raises(
        DamagedMemory, match=r"the word 'begun' of row 0 .* this member has written another one"
    ):
        network.stabilize()


@pytest.mark.parametrize("gone", "abc")
@pytest.mark.parametrize("number", [1, *NUMBERS])
def test_members_come_and_go_however_many_views_there_were(
    number: int, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is taken that another member has had, or none, whichever incarnation the number of the view gives."""
    first = View.first
    monkeypatch.setattr(View, "first", lambda member: View(1, number, 0, first(member).members))
    network = group("a b c")
    left = "abc".replace(gone, "")
    network.leave(gone)
    network.stabilize()
    for name in "de":
        network.add(name)
        network.join(name, left[0])
        network.stabilize()
        network.cast(name, name.encode())
        for each in (*left, name):
            assert bodies(network, each)[-1] == name.encode()


@pytest.mark.parametrize("lost", [False, True])
def test_an_order_ends_before_an_old_incarnation_looks_like_a_later_one(
    *, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next view begins another one; what all members but one have before it is delivered there, too."""
    first, number = View.first, VIEWS_MAX - 3
    monkeypatch.setattr(View, "first", lambda member: View(1, number, 0, first(member).members))
    network = group("a b c")
    for name in "abc":
        network.cast(name, b"before " + name.encode())
    network.stabilize()
    network.leave("b")
    network.asleep = {"c"}
    network.cast("a", b"late")
    while lost and network["a"].installed.number < VIEWS_MAX:  # type: ignore[union-attr]
        for one, other in itertools.permutations("abc", 2):
            network.deliver(one, other, 1)
        network.cast("a", b"between")
    network.asleep = set()
    network.stabilize()
    for name in "ac":
        network.cast(name, b"after " + name.encode())
    network.stabilize()
    assert bodies(network, "a") == bodies(network, "c")[-len(bodies(network, "a")) :]
    assert sorted(bodies(network, "c")[-2:]) == [b"after a", b"after c"]
    view = network["a"].installed
    assert view is not None
    assert view.number == VIEWS_MAX
    for name in "ac":
        ring = network.endpoints[name].stack.focus("RING")
        assert ring is not None
        assert fence_of(ring.up_held()).rows == first_rows(view)
