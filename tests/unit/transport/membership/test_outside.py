"""An endpoint that is in no view, until it is in one or out for good."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership.effects import Effect
from orcalike.transport.membership.messages import ControlMessage, Join, Nowhere
from orcalike.transport.membership.outside import Outside
from orcalike.transport.view import Member

ME, ONE, TWO = Member("sim:zero", 50, 0), Member("sim:one", 1, 1), Member("sim:two", 2, 2)
D = 1_000


class Port:
    """What a layer would do."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.failed: list[str] = []
        self.made: list[list[Member]] = []

    def contact_with(self, address: str, message: ControlMessage) -> None:
        self.sent.append(address)

    def join_failed(self, why: str) -> None:
        self.failed.append(why)

    def make_group(self, joiners: list[Nowhere]) -> None:
        self.made.append([each.member for each in joiners])

    def changed(self, change: Effect) -> None:
        """No matter."""

    def mark(self, step: str) -> None:
        """No matter."""

    def plan(self) -> None:
        """No matter."""


def peer(address: str, reached_at: str, link: int = 0) -> Any:
    """The other end of a link, which has greeted."""
    incarnation = next(each.incarnation for each in (ME, ONE, TWO) if each.address == address)
    return SimpleNamespace(
        address=address, reached_at=reached_at, incarnation=incarnation, link=link
    )


BEGINNINGS: list[Callable[[Outside], None]] = [
    lambda outside: outside.request.ask("sim:one", 0),
    lambda outside: outside.bootstrap.begin(["sim:one"], 0),
]


@pytest.mark.parametrize("begin", BEGINNINGS, ids=["asks", "makes"])
def test_one_that_is_out_for_good_asks_no_process_any_more(
    begin: Callable[[Outside], None],
) -> None:
    port = Port()
    outside = Outside(port, ME, {}, 3, D)
    assert (outside.wants_in, outside.deadline) == (False, None)
    begin(outside)
    assert (outside.wants_in, outside.deadline is None) == (True, False)
    assert port.sent == ["sim:one"]
    outside.end()
    assert (outside.wants_in, outside.deadline is None) == (False, True)
    outside.expire(10**18)
    assert (port.sent, port.failed) == (["sim:one"], [])


@pytest.mark.parametrize("begin", BEGINNINGS, ids=["asks", "makes"])
def test_one_that_is_in_waits_for_no_answer_any_more(begin: Callable[[Outside], None]) -> None:
    port = Port()
    outside = Outside(port, ME, {}, 3, D)
    begin(outside)
    outside.entered()
    assert outside.deadline is None
    outside.expire(10**18)
    assert (port.sent, port.failed) == (["sim:one"], [])


@pytest.mark.parametrize("begin", BEGINNINGS, ids=["asks", "makes"])
def test_what_is_not_answered_in_time_is_reported(begin: Callable[[Outside], None]) -> None:
    port = Port()
    outside = Outside(port, ME, {}, 3, D)
    begin(outside)
    deadline = outside.deadline
    assert deadline is not None
    outside.expire(deadline - 1)
    assert port.failed == []
    outside.expire(deadline)
    assert len(port.failed) == 1


def test_rank_0_alone_may_ask_for_a_promise() -> None:
    port = Port()
    outside = Outside(port, ONE, {}, 3, D)
    with pytest.raises(ProtocolError, match="a round of rank 2"):
        outside.asked(Join(TWO, {}, 1), 0)
    assert port.sent == []
    outside.asked(Join(TWO, {}), 0)
    outside.asked(Join(ME, {}, 1), 0)
    assert port.sent == ["sim:two", "sim:zero"]
    assert outside.bootstrap.holder == ME


@pytest.mark.parametrize("reached_at", ["sim:one", "sim:name"])
def test_the_process_that_was_asked_is_in_no_group_yet(reached_at: str) -> None:
    """Of what another one says it takes no notice."""
    port = Port()
    outside = Outside(port, ME, {}, 0, D)
    outside.request.ask(reached_at, 0)
    outside.answered(Nowhere(0, 0, TWO, {}), peer("sim:two", "sim:two"), 1)
    assert (port.failed, outside.deadline is None) == ([], False)
    for _ in range(2):  # what comes once more is no answer
        outside.answered(Nowhere(0, 0, ONE, {}), peer("sim:one", reached_at), 1)
        assert (port.failed, outside.deadline) == (["sim:one is in no group yet"], None)


def test_a_process_answers_for_itself() -> None:
    outside = Outside(Port(), ME, {}, 0, D)
    with pytest.raises(ProtocolError):
        outside.answered(Nowhere(0, 0, TWO, {}), peer("sim:one", "sim:one"), 0)


@pytest.mark.parametrize(("address", "failed"), [("sim:one", ["gone"]), ("sim:two", [])])
def test_a_link_that_breaks_matters_if_it_is_to_the_process_that_was_asked(
    address: str, failed: list[str]
) -> None:
    port = Port()
    outside = Outside(port, ME, {}, 0, D)
    outside.request.ask("sim:one", 0)
    outside.lost(peer(address, address), "gone", 1)
    assert port.failed == failed


@pytest.mark.parametrize(("link", "asks"), [(-1, True), (3, False)])
def test_rank_0_is_given_up_when_no_link_to_it_is_left(link: int, asks: bool) -> None:
    """Another link may stand: then nothing is lost."""
    port = Port()
    outside = Outside(port, ONE, {}, 3, D)
    outside.asked(Join(ME, {}, 1), 0)
    port.sent.clear()
    outside.lost(peer("sim:zero", "sim:zero", link), "gone", 1)
    assert port.sent == (["sim:zero"] if asks else [])


def test_rank_0_makes_the_group_when_all_have_promised() -> None:
    port = Port()
    outside = Outside(port, ME, {}, 3, D)
    outside.bootstrap.begin(["sim:one", "sim:two"], 0)
    for member in (ONE, TWO):
        assert port.made == []
        where = peer(member.address, member.address)
        outside.answered(Nowhere(1, 3, member, {}), where, 1)
    assert port.made == [[ONE, TWO]]


def test_a_promise_is_over_when_another_process_answers_at_the_address_of_rank_0() -> None:
    outside = Outside(Port(), ONE, {}, 3, D)
    outside.asked(Join(ME, {}, 1), 0)
    there = peer("sim:zero", "sim:zero")
    outside.linked(there, 1)
    assert outside.bootstrap.holder == ME
    there.incarnation = 51
    outside.answered(Nowhere(0, 3, Member("sim:zero", 51, 0), {}), there, 2)
    assert outside.bootstrap.holder is None
