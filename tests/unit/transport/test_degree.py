"""Resilience degrees on their way: operation before class before group, packets, and R (H2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.transport import stacks
from orcalike.transport.config import StackConfig
from orcalike.transport.degree import (
    ALL,
    MAJORITY,
    Resilience,
    degree_of,
    largest_of,
    least_of,
    resilience_of,
)
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.view import Member
from orcalike.transport.wire.message import Message

STACK = "PACK:NOTARY:XFER:TOTAL:MBRSHIP:COM:unix"


class Notary(Layer):
    """Notes the degree of each packet, and lets it pass without one: this group has one member."""

    name = "NOTARY"

    def __init__(self, core: Core, config: StackConfig, me: Member) -> None:
        super().__init__(core)
        self.packets: list[tuple[int, int]] = []
        """Degree, and how many messages."""
        self.least: list[int] = []

    def cast(self, message: Message) -> None:
        self.packets.append((message.degree, message.count))
        message.degree = 0
        self.below.cast(message)

    def degree(self, least: int) -> None:
        self.least.append(least)


@orca.shared
class Plain:
    """Its operations have the group's degree, but for one."""

    def __init__(self) -> None:
        self.value = 0

    @orca.read
    def get(self) -> int:
        return self.value

    @orca.write
    def add(self, by: int = 1) -> None:
        self.value += by

    @orca.write(resilience=3)
    def add_safely(self, by: int = 1) -> None:
        self.value += by

    @orca.write(resilience=0)
    def add_carelessly(self, by: object = 1) -> None:
        self.value += 1

    @orca.write(resilience="majority")
    def add_by_majority(self) -> None:
        self.value += 1


@orca.shared
class Ordinary:
    """Nothing about degrees."""

    def __init__(self) -> None:
        self.value = 0

    @orca.write
    def add(self) -> None:
        self.value += 1


@orca.shared(resilience=2)
class Safe:
    """Its operations have its degree, but for one."""

    def __init__(self) -> None:
        self.value = 0

    @orca.write
    def add(self) -> None:
        self.value += 1

    @orca.write(resilience=1)
    def add_less_safely(self) -> None:
        self.value += 1


@orca.shared
class Safer(Safe):
    """What it inherits has the degree of this class, if it has none of its own."""

    @orca.write(resilience=5)
    def add_most_safely(self) -> None:
        self.value += 1


@orca.atomic
def both(one: Ordinary, other: Safe) -> None:
    one.add()
    other.add()


@orca.atomic(resilience=4)
def both_safely(one: Ordinary, other: Safe) -> None:
    one.add()
    other.add()


@orca.atomic(resilience=0)
def carelessly(one: Ordinary) -> None:
    one.add()


class Watched:
    """A group whose packets and R are seen."""

    def __init__(self, group: orca.Group) -> None:
        self.group = group
        notary = group._session.stack.focus("NOTARY")
        assert isinstance(notary, Notary)
        self.notary = notary

    def degrees(self, *calls: Callable[[], object]) -> list[tuple[int, int]]:
        """The packets of some calls that are made while nothing is cast."""
        self.group.fence()
        self.notary.packets.clear()

        def make(now: int) -> None:
            for call in calls:
                call()

        self.group._session.pump.call(make)
        self.group._session.pump.call(self.group._session.stack.flush_packets)
        return list(self.notary.packets)

    def degree(self, call: Callable[[], object]) -> int:
        """The degree of one call."""
        ((degree, messages),) = self.degrees(call)
        assert messages == 1
        return degree


@pytest.fixture
def join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Watched]]:
    monkeypatch.setattr(stacks, "_LAYERS", stacks._LAYERS | {"NOTARY": Notary})
    joined = []

    def join(resilience: Resilience = 0) -> Watched:
        joining = orca.join(listen=f"unix:{tmp_path}/group", stack=STACK, resilience=resilience)
        joined.append(joining)
        return Watched(joining.__enter__())

    yield join
    for joining in joined:
        joining.__exit__(None, None, None)


# Whose degree counts.


def test_an_operations_own_before_its_classs_before_the_groups(
    join: Callable[..., Watched],
) -> None:
    watched = join(1)
    group = watched.group
    plain, safe, safer = (
        group.share(Plain, "plain"),
        group.share(Safe, "safe"),
        group.share(Safer, "safer"),
    )
    assert watched.degree(lambda: plain.add.nowait()) == 1
    assert watched.degree(lambda: plain.add_safely.nowait()) == 3
    assert watched.degree(lambda: plain.add_carelessly.nowait()) == 0
    assert watched.degree(lambda: plain.add_carelessly.nowait([1] * 1000)) == 0
    assert watched.degree(lambda: plain.add_by_majority.nowait()) == MAJORITY
    assert watched.degree(lambda: safe.add.nowait()) == 2
    assert watched.degree(lambda: safe.add_less_safely.nowait()) == 1
    assert watched.degree(lambda: safer.add.nowait()) == 1  # its class has none
    assert watched.degree(lambda: safer.add_less_safely.nowait()) == 1
    assert watched.degree(lambda: safer.add_most_safely.nowait()) == 5


def test_in_a_group_of_degree_0_nothing_has_one(join: Callable[..., Watched]) -> None:
    watched = join()
    ordinary = watched.group.share(Ordinary, "ordinary")
    assert watched.degree(lambda: ordinary.add.nowait()) == 0
    assert watched.degree(lambda: watched.group.fence.nowait()) == 0
    assert watched.notary.least == []


def test_slow_arguments_have_the_same_degree(join: Callable[..., Watched]) -> None:
    watched = join()
    plain = watched.group.share(Plain, "plain")
    assert watched.degree(lambda: plain.add_safely.nowait(by=2)) == 3
    assert watched.degree(lambda: plain.add_safely.nowait(10**30)) == 3
    assert plain.get() == 2 + 10**30


def test_what_the_group_does_has_the_groups_degree(join: Callable[..., Watched]) -> None:
    watched = join("majority")
    group = watched.group
    assert watched.degree(lambda: group.fence.nowait()) == MAJORITY
    assert watched.degree(lambda: group.barrier.nowait()) == MAJORITY
    assert watched.degree(lambda: group.find.nowait(Plain, "nobody")) == MAJORITY
    assert watched.degree(lambda: group.share.nowait(Ordinary, "ordinary")) == MAJORITY


def test_an_atomic_functions_degree_is_the_largest(join: Callable[..., Watched]) -> None:
    watched = join(1)
    ordinary, safe = watched.group.share(Ordinary, "ordinary"), watched.group.share(Safe, "safe")
    assert watched.degree(lambda: both.nowait(ordinary, safe)) == 2
    assert watched.degree(lambda: both_safely.nowait(ordinary, safe)) == 4
    assert watched.degree(lambda: carelessly.nowait(ordinary)) == 1


def test_a_withdrawal_has_the_groups_degree(join: Callable[..., Watched]) -> None:
    watched = join(2)
    waiting = watched.group.find.nowait(Plain, "nobody")
    assert watched.degree(waiting.cancel) == 2
    with pytest.raises(orca.InvocationCancelled):
        waiting.result(timeout=30)


# Packets.


def test_a_packet_has_the_largest_degree_of_its_messages(join: Callable[..., Watched]) -> None:
    watched = join()
    plain, safe = watched.group.share(Plain, "plain"), watched.group.share(Safe, "safe")
    calls = (
        plain.add.nowait,
        safe.add.nowait,
        plain.add_safely.nowait,
        safe.add_less_safely.nowait,
    )
    assert watched.degrees(*calls) == [(3, 4)]
    assert watched.degrees(plain.add.nowait, plain.add.nowait) == [(0, 2)]
    assert watched.degrees(plain.add.nowait, plain.add_by_majority.nowait) == [(MAJORITY, 2)]
    fresh = plain.add_by_majority.nowait, lambda: watched.group.share.nowait(Safe, "another")
    assert watched.degrees(*fresh) == [(ALL, 2)]


def test_a_number_and_a_majority_do_not_mix(join: Callable[..., Watched]) -> None:
    watched = join()
    plain = watched.group.share(Plain, "plain")
    number, majority = plain.add_safely.nowait, plain.add_by_majority.nowait
    calls = (plain.add.nowait, number, majority, plain.add.nowait, majority, number)
    assert watched.degrees(*calls) == [(3, 2), (MAJORITY, 3), (3, 1)]
    by_name = lambda: plain.add_safely.nowait(by=1)
    assert watched.degrees(majority, by_name, majority) == [(MAJORITY, 1), (3, 1), (MAJORITY, 1)]
    assert plain.get() == 9


def test_what_cannot_travel_leaves_no_degree_behind(join: Callable[..., Watched]) -> None:
    watched = join()
    plain = watched.group.share(Plain, "plain")

    def fail() -> None:
        with pytest.raises(orca.NotSerializable):
            plain.add_safely.nowait(lambda: 1)  # type: ignore[arg-type]

    assert watched.degrees(fail, plain.add.nowait) == [(0, 1)]


# R.


def test_r_is_the_smallest_degree_above_0(join: Callable[..., Watched]) -> None:
    watched = join()
    group, least = watched.group, watched.notary.least
    ordinary = group.share(Ordinary, "ordinary")
    assert least == []
    plain = group.share(Plain, "plain")
    assert least == [3]
    safe = group.share(Safe, "safe")
    assert least == [3, 1]
    another = group.share(Safe, "another")
    group.drop(safe)
    group.drop(ordinary)
    assert least == [3, 1]
    group.drop(another)
    group.drop(plain)
    assert least == [3, 1, 3, 0]


def test_the_groups_own_degree_counts(join: Callable[..., Watched]) -> None:
    watched = join(2)
    assert watched.notary.least == [2]
    watched.group.share(Plain, "plain")
    assert watched.notary.least == [2]
    safe = watched.group.share(Safe, "safe")
    watched.group.drop(safe)
    assert watched.notary.least == [2, 1, 2]


def test_all_hold_what_may_change_r(join: Callable[..., Watched]) -> None:
    watched = join(2)
    group = watched.group
    assert watched.degree(lambda: group.share.nowait(Plain, "plain")) == 2
    assert watched.degree(lambda: group.share.nowait(Safe, "safe")) == ALL
    safe, plain = group.share(Safe, "safe"), group.share(Plain, "plain")
    assert watched.degree(lambda: group.drop.nowait(plain)) == 2
    assert watched.degree(lambda: group.drop.nowait(safe)) == ALL


def test_an_object_that_did_not_come_to_be_does_not_count(join: Callable[..., Watched]) -> None:
    watched = join()
    with pytest.raises(ValueError, match="not today"):
        watched.group.share(Refuses, "refuses")
    assert watched.notary.least == []
    watched.group.share(Safe, "safe")
    assert watched.notary.least[-1] == 1


@orca.shared(resilience=1)
class Refuses:
    """There never is one."""

    def __init__(self) -> None:
        raise ValueError("not today")

    @orca.write
    def add(self) -> None:
        """Nothing."""


def test_a_joiner_learns_the_degrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The group's, and R, of classes that it does not know either."""
    monkeypatch.setattr(stacks, "_LAYERS", stacks._LAYERS | {"NOTARY": Notary})
    with (
        orca.join(listen=f"unix:{tmp_path}/group", stack=STACK, resilience=3) as first,
        orca.join(seeds=first.address, stack=STACK, timeout=60) as second,
    ):
        assert second._runtime.degrees.group == 3
        first.share(Safe, "safe")
        with orca.join(seeds=first.address, stack=STACK, timeout=60) as third:
            assert Watched(third).notary.least == [1]


# What is refused.


def test_too_few_members_to_wait_for(tmp_path: Path) -> None:
    with orca.join(listen=f"unix:{tmp_path}/group", blocked="raise") as group:
        safe, plain = group.share(Safe, "safe"), group.share(Plain, "plain")
        text = "Safe.add: degree 2 takes 3 members with replicas, and the view has 1"
        with pytest.raises(orca.NotEnoughMembers, match=text):
            safe.add()
        with pytest.raises(orca.NotEnoughMembers):
            safe.add.nowait()
        with pytest.raises(orca.NotEnoughMembers):
            both.nowait(group.share(Ordinary, "ordinary"), safe)
        plain.add()
        assert plain.get() == 1


@pytest.mark.parametrize("resilience", [-1, 254, True, 1.0, "all"])
def test_no_degree(resilience: Resilience) -> None:
    with pytest.raises(ValueError, match=r"from 0 to 253, or .majority."):
        orca.join(resilience=resilience).__enter__()
    for decorate in (
        lambda: orca.shared(resilience=resilience),
        lambda: orca.write(resilience=resilience),
        lambda: orca.atomic(resilience=resilience),
    ):
        with pytest.raises(orca.DeclarationError, match="leave it out for the group's own"):
            decorate()


def test_a_group_of_one_that_no_process_can_join_has_degree_0(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "orcalike"), orca.join(blocked="raise") as group:
        group.share(Ordinary, "ordinary").add()
        assert caplog.messages == []
        group.share(Safe, "safe").add()
        group.share(Plain, "plain").add_safely()
    assert len(caplog.messages) == 1
    assert "Safe asks for a resilience degree, which is 0 in a group of one" in caplog.messages[0]


# The arithmetic.


def test_degrees_as_bytes() -> None:
    assert [degree_of(0), degree_of(7), degree_of("majority")] == [0, 7, MAJORITY]
    assert [resilience_of(0), resilience_of(MAJORITY)] == [0, "majority"]
    assert least_of([]) == least_of([0, 0]) == 0
    assert least_of([0, MAJORITY, 5, ALL]) == 5
    assert least_of([MAJORITY, ALL]) == MAJORITY
    assert largest_of([0, 2, 1], 5) == 2
    assert largest_of([2, MAJORITY], 3) == 2
    assert largest_of([2, MAJORITY], 4) == MAJORITY
    assert largest_of([2, MAJORITY], 9) == MAJORITY
    assert largest_of([3, ALL], 3) == ALL
