"""Endpoints of other views: what is sent to them, how often, and what they are asked."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from orcalike.transport.membership import events
from orcalike.transport.membership.messages import (
    Behind,
    ControlMessage,
    Expelled,
    Gone,
    Inside,
    Install,
    Join,
    Ship,
    Value,
)
from orcalike.transport.membership.other_views import ANSWER_AGAIN, NOTED_MAX, OtherViews
from orcalike.transport.view import Member, View
from tests.lib import agreement
from tests.lib.agreement import A, B, C, D

BEFORE = View(1, 1, 0, (A, B))
PRESENT = View(1, 2, 0, (A, B, C), follows=BEFORE.identity)
NEXT = View(1, 3, 0, (A, B, C), follows=PRESENT.identity)


class Endpoint(NamedTuple):
    """The other end of a link."""

    incarnation: int
    address: str
    position: int = -1


def endpoint(member: Member) -> Endpoint:
    """The one of a member."""
    return Endpoint(member.incarnation, member.address, PRESENT.position(member.incarnation))


class Port:
    """What a layer would do."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.asked: list[str] = []
        self.asks_leader = 0
        self.steps: list[events.Event] = []

    def step(self, event: events.Event) -> None:
        self.steps.append(event)

    def tell(self, position: int, message: ControlMessage) -> None:
        self.sent.append((position, message))

    def contact_with(self, address: str, message: ControlMessage) -> None:
        self.sent.append((address, message))

    def ask_what_is_missing(self, address: str) -> None:
        self.asked.append(address)

    def ask_leader(self) -> None:
        self.asks_leader += 1


@pytest.fixture
def port() -> Port:
    return Port()


def others(port: Port, me: Member = B) -> OtherViews:
    """Those of a member of `PRESENT`, which has packets 4 and 5 of the view before."""
    held = agreement.Port(me, PRESENT, []).agreement
    return OtherViews(port, held, lambda held: [b"4", b"5"], me.incarnation)


def test_one_of_an_older_view_gets_the_present_one_and_again_only_after_a_while(
    port: Port,
) -> None:
    these = others(port)
    these.correct(endpoint(A), 0)
    these.correct(endpoint(A), ANSWER_AGAIN - 1)
    assert port.sent == [(A.address, Install(PRESENT, b""))]
    these.correct(endpoint(A), ANSWER_AGAIN)
    assert len(port.sent) == 2
    these.correct(None, 0)  # its sender cannot be answered
    assert len(port.sent) == 2


def test_one_that_the_group_went_on_without_is_notified(port: Port) -> None:
    these = others(port)
    these.correct(endpoint(D), 0)
    assert port.sent == [(D.address, Expelled(PRESENT, D.incarnation, ""))]


@pytest.mark.parametrize(
    ("stands", "count"), [(True, 1), (False, 2)], ids=["another link stands", "none does"]
)
def test_what_went_by_a_broken_link_is_sent_again(port: Port, stands: bool, count: int) -> None:
    these = others(port)
    these.link_broke(endpoint(D), stands=stands)
    assert port.sent == []  # nothing was sent to it
    these.correct(endpoint(D), 0)
    these.link_broke(endpoint(D), stands=stands)
    again = D.address, Expelled(PRESENT, D.incarnation, "")
    assert port.sent == [again, again]
    these.correct(endpoint(D), 0)
    assert port.sent == [again, again] + [again] * (count - 1)


@pytest.mark.parametrize(
    ("view", "shipped"), [(BEFORE.identity, 2), ((1, 0, 0), 0)], ids=["the one before", "older"]
)
def test_a_member_that_is_behind_gets_its_packets_and_the_view(
    port: Port, view: Any, shipped: int
) -> None:
    assert others(port).answer(endpoint(C), Behind(view, b"held"), 0)
    ships: list[Any] = [(C.address, Ship(piece, BEFORE.identity)) for piece in (b"4", b"5")]
    assert port.sent == [*ships[:shipped], (C.address, Install(PRESENT, b""))]


def test_one_that_is_ahead_is_asked_and_a_non_member_only_if_it_was_one(port: Port) -> None:
    these = others(port)
    assert not these.answer(endpoint(C), Behind(NEXT.identity, b""), 0)
    assert (port.asked, port.sent) == ([C.address], [])
    assert not these.answer(endpoint(D), Behind(NEXT.identity, b""), 0)
    assert port.asked == [C.address]
    these.leave_view(View(1, 1, 0, (A, D)))
    assert not these.answer(endpoint(D), Behind(NEXT.identity, b""), ANSWER_AGAIN)
    assert (port.asked, port.sent) == ([C.address, D.address], [])
    assert not these.answer(endpoint(D), Behind(BEFORE.identity, b""), 2 * ANSWER_AGAIN)
    assert port.sent == [(D.address, Expelled(PRESENT, D.incarnation, ""))]


def test_members_are_asked_in_turn_for_what_the_next_view_needs(port: Port) -> None:
    these = others(port)
    for _ in range(3):
        these.ask_for_cut(NEXT)
    assert port.asked == [A.address, C.address]
    these.enter()
    these.ask_for_cut(NEXT)
    assert port.asked == [A.address, C.address, A.address]


def test_a_joiner_is_passed_on_and_the_leader_asked_about_the_second_time(
    port: Port,
) -> None:
    these = others(port)
    for turn in range(2):
        these.asked_to_join(Join(D, {}), -1)
        assert (port.sent, port.asks_leader) == ([(0, Join(D, {}))] * (turn + 1), turn)
    these.asked_to_join(Join(C, {}), -1)  # it is in already
    assert port.sent[-1] == (C.address, Install(PRESENT, b""))
    these.leave_view(View(1, 1, 0, (A, D)))
    these.asked_to_join(Join(D, {}), -1)  # an incarnation is a member once
    assert port.sent[-1] == (D.address, Expelled(PRESENT, D.incarnation, ""))


def test_in_a_bootstrap_a_member_says_at_once_that_it_is_in_a_view(port: Port) -> None:
    others(port, A).asked_to_join(Join(D, {}, 7), -1)
    assert port.sent == [(D.address, Inside(7))]
    assert port.steps == [events.JoinAsked(D, {}, -1)]


def test_the_leader_takes_a_request_itself(port: Port) -> None:
    others(port, A).asked_to_join(Join(D, {"size": 4}), 2)
    assert (port.sent, port.steps) == ([], [events.JoinAsked(D, {"size": 4}, 2)])


def test_one_that_is_out_hands_on_the_view_that_it_is_out_by(port: Port) -> None:
    these = others(port)
    these.say_gone(endpoint(A), 0, has_left=False)
    these.say_gone(endpoint(A), 1, has_left=False)
    assert port.sent == [(A.address, Gone())]
    these.outcome = Value(View(1, 3, 0, (A, C), follows=PRESENT.identity), b"cut")
    these.say_gone(endpoint(A), ANSWER_AGAIN, has_left=True)
    these.say_gone(endpoint(D), ANSWER_AGAIN, has_left=True)
    out = Expelled(these.outcome.view, D.incarnation, "")
    assert port.sent[1:] == [(A.address, Install(*these.outcome)), (D.address, out)]


def test_what_is_remembered_has_a_bound(port: Port) -> None:
    these = others(port)
    for number in range(NOTED_MAX + 10):
        these.sent(f"sim:{number}", Behind(PRESENT.identity, b""))
        these.leave_view(View(1, 1, 0, (Member("sim:x", 100 + number, 0),)))
    assert len(these.questioned) == len(these.former) == NOTED_MAX
    assert 100 not in these.former
    these.sent("sim:y", Gone())
    assert "sim:y" not in these.questioned
