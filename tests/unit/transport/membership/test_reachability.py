"""Which members can be reached, as the agreement is to know of them."""

from __future__ import annotations

from typing import Any

import pytest

from orcalike.transport.layers.base import Core
from orcalike.transport.membership import events
from orcalike.transport.membership.messages import ControlMessage, Here
from orcalike.transport.membership.reachability import HELD_UP, Reachability
from orcalike.transport.view import Member, View
from tests.lib import agreement

DETECTION = 1_000_000_000
MEMBERS = tuple(Member(f"sim:{number}", 10 + number, number) for number in range(10))


class Port:
    """What a layer would do: a line for each call."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.core = Core()
        self.held_up = False

    def step(self, event: events.Event) -> None:
        assert isinstance(event, events.Suspected)
        self.calls.append(("suspects", sorted(event.incarnations)))

    def schedule(self) -> None:
        pass

    def plan(self) -> None:
        pass

    def is_held_up(self) -> bool:
        return self.held_up

    def tell(self, position: int, message: ControlMessage) -> None:
        self.calls.append(("here" if message == Here() else message.kind, position))

    def suspected(self, incarnation: int, why: str) -> None:
        self.calls.append((why, incarnation))

    def unsettle(self, incarnation: int | None) -> None:
        self.calls.append(("unsettle", incarnation))

    def say_again(self, incarnation: int) -> None:
        self.calls.append(("say again", incarnation))


def reachability(port: Port, position: int, size: int) -> Reachability:
    """That of the member at a position of a view of `size` members, which has begun to watch."""
    view = View(1, 1, 0, MEMBERS[:size])
    of = agreement.Port(MEMBERS[position], view, []).agreement
    this = Reachability(port, of, MEMBERS[position].incarnation, DETECTION)
    this.watch(0)
    return this


def test_a_member_that_is_silent_is_suspected_until_it_is_heard(port: Port) -> None:
    this = reachability(port, 0, 2)
    assert not this.check_silence(DETECTION - 1)
    assert this.check_silence(DETECTION)
    assert port.calls == [("it is silent", 11), ("suspects", [11])]
    port.calls.clear()
    this.detector.heard(11, DETECTION + 1)
    assert this.check_silence(DETECTION + DETECTION // 2)
    assert port.calls == [("suspects", []), ("say again", 11), ("here", 1)]


@pytest.mark.parametrize(
    ("position", "size", "peers"),
    [(1, 10, (0, *range(2, 10))), (7, 8, tuple(range(7))), (7, 10, (0, 1, 2, 3))],
    ids=["one of the oldest: all", "a small view: all", "a large one: the oldest"],
)
def test_heartbeats_go_to_the_oldest_and_in_small_views_to_all(
    port: Port, position: int, size: int, peers: tuple[int, ...]
) -> None:
    reachability(port, position, size)
    assert port.core.beats == tuple(MEMBERS[each] for each in peers)


BEGIN = DETECTION // HELD_UP
"""So long it is held up before it watches."""


def at_rest(port: Port) -> Reachability:
    """That of one of three members on one host, whose kernel tells of each death."""
    port.core.rests = True
    this = reachability(port, 0, 3)
    assert (port.core.beats, port.core.answers, this.detector.deadline) == ((), True, None)
    return this


def test_where_the_kernel_tells_of_deaths_others_are_watched_only_while_one_is_held_up(
    port: Port,
) -> None:
    this = at_rest(port)
    port.held_up = True
    this.held_up(0)
    assert this.attend_at == BEGIN
    assert not this.check_silence(BEGIN - 1)
    assert port.core.beats == ()
    assert not this.check_silence(BEGIN)
    assert port.core.beats == MEMBERS[1:3]
    asked = [("HELD_UP", 1), ("HELD_UP", 2)]
    assert port.calls == asked, "one of these is to go on without a silent one"
    port.calls.clear()
    this.held_up(BEGIN + 1)
    assert this.attend_at is None, "it watches already"
    this.detector.heard(11, BEGIN + DETECTION)
    assert this.check_silence(BEGIN + DETECTION)
    assert port.calls == [*asked, ("it is silent", 12), ("suspects", [12])]
    port.held_up = False
    assert this.check_silence(BEGIN + 2 * DETECTION), "nor is it left alone while it is suspected"
    this.detector.heard(12, BEGIN + 3 * DETECTION)
    this.detector.heard(11, BEGIN + 3 * DETECTION)
    assert this.check_silence(BEGIN + 3 * DETECTION)
    assert not this.check_silence(BEGIN + 5 * DETECTION)
    assert (port.core.beats, port.core.answers, this.detector.deadline) == ((), True, None)


def test_one_that_is_asked_watches_for_one_that_is_held_up(port: Port) -> None:
    this = at_rest(port)
    this.asked_to_watch(5)
    assert port.core.beats == MEMBERS[1:3]
    this.detector.heard(11, DETECTION)
    this.detector.heard(12, DETECTION)
    assert this.check_silence(5 + DETECTION)
    this.asked_to_watch(7 + DETECTION)
    for now in (2 * DETECTION, 3 * DETECTION):
        this.detector.heard(11, now)
        this.detector.heard(12, now)
    assert not this.check_silence(7 + 3 * DETECTION), "for so long it was not asked again"
    assert port.core.beats == ()
    assert port.calls == [], "it is not held up itself"


def test_in_a_large_view_the_oldest_are_asked(port: Port) -> None:
    port.core.rests = port.held_up = True
    this = reachability(port, 7, 10)
    this.held_up(0)
    this.check_silence(BEGIN)
    assert port.calls == [("HELD_UP", position) for position in range(4)]
    assert port.core.beats == MEMBERS[:4]


def test_one_that_was_held_up_for_a_moment_watches_none(port: Port) -> None:
    this = at_rest(port)
    this.held_up(7)
    this.held_up(8)
    assert this.attend_at == 7 + BEGIN, "it is the first time that counts"
    assert not this.check_silence(7 + BEGIN)
    assert port.core.beats == ()
    assert this.attend_at is None
    port.held_up = True
    this.held_up(9 + BEGIN)
    assert this.attend_at == 9 + 2 * BEGIN


def test_a_broken_link_is_a_suspicion_at_once_and_one_made_again_ends_it(port: Port) -> None:
    this = reachability(port, 0, 3)
    this.link_broke(12, "reset", 5, is_replaced=False, is_leaving=False)
    assert port.calls == [("reset", 12), ("suspects", [12]), ("unsettle", 12)]
    port.calls.clear()
    assert this.link_stands(12, 6, was_missed=False)
    assert (port.calls, this.unlinked) == ([("suspects", [])], {})
    assert not this.link_stands(12, 7, was_missed=True)
    assert port.calls == [("suspects", [])]


def test_a_gap_is_closed_though_another_link_stands(port: Port) -> None:
    this = reachability(port, 0, 3)
    this.link_broke(12, "reset", 5, is_replaced=True, is_leaving=False)
    assert (port.calls, this.unlinked) == ([("unsettle", 12), ("say again", 12)], {})


def test_what_was_lost_without_a_link_is_lost_with_it_again(port: Port) -> None:
    this = reachability(port, 0, 3)
    this.link_broke(12, "reset", 5, is_replaced=False, is_leaving=True)
    assert port.calls == [("suspects", [12]), ("unsettle", 12)]  # no surprise to one that leaves
    port.calls.clear()
    assert this.link_stands(12, 6, was_missed=True)
    assert port.calls == [("suspects", []), ("unsettle", 12)]


def test_links_matter_to_members_of_the_view_alone(port: Port) -> None:
    this = reachability(port, 0, 3)
    this.link_broke(12, "reset", 5, is_replaced=False, is_leaving=False)
    this.enter(View(1, 2, 0, MEMBERS[:2]))
    assert this.unlinked == {}


@pytest.fixture
def port() -> Port:
    return Port()
