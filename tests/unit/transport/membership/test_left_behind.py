"""Members that a view went on without: which member seeks them, and for how long."""

from __future__ import annotations

from typing import Any

from orcalike.transport.membership.left_behind import RESET, SOUGHT, SOUGHT_MAX, LeftBehind
from orcalike.transport.membership.messages import ControlMessage, Expelled, Gone
from orcalike.transport.view import Member, View

D, SILENCE_TIMES = 1_000, 5_000
A, B, C = (Member(f"sim:{number}", number, number) for number in range(3))
BEFORE = View(1, 5, 0, (A, B, C))


class Port:
    """What a layer would do."""

    def __init__(self) -> None:
        self.sought: list[Member] = []
        self.sent: list[tuple[Any, Any]] = []

    def seek(self, members: tuple[Member, ...]) -> None:
        self.sought = list(members)

    def tell(self, position: int, message: ControlMessage) -> None:
        self.sent.append((position, message))

    def contact_with(self, address: str, message: ControlMessage) -> None:
        self.sent.append((address, message))


def test_one_that_was_left_out_is_sought_by_the_leader_for_a_while() -> None:
    port = Port()
    left = LeftBehind(port, D, SILENCE_TIMES)
    assert left.deadline is None
    left.left_out(B, 100)
    left.seek(1, 100)
    assert port.sought == [B]
    assert left.deadline == 100 + SILENCE_TIMES + SOUGHT * D
    left.seek(1, left.deadline)
    assert port.sought == []
    assert left.deadline is None


def test_those_of_a_reset_are_sought_by_the_oldest_until_they_are_out_or_dead() -> None:
    port = Port()
    left = LeftBehind(port, D, SILENCE_TIMES)
    left.reset(BEFORE, View(2, 6, 0, (A,)), {C.incarnation})
    assert left.deadline is None
    left.seek(1, 0)
    assert port.sought == []
    left.seek(0, 100 * D)
    assert port.sought == [B]
    left.forget(B.incarnation, 0, 100 * D)
    assert port.sought == []


def test_only_the_last_ones_are_sought() -> None:
    """A group that is reset again and again, each time without others."""
    port = Port()
    left = LeftBehind(port, D, SILENCE_TIMES)
    others = [Member(f"sim:{number}", number, number) for number in range(1, SOUGHT_MAX + 2)]
    left.reset(View(1, 5, 0, (A, *others[:-1])), View(2, 6, 0, (A,)), ())
    left.left_out(others[-1], 0)
    left.seek(0, 1)
    assert port.sought == others[1:]


def test_a_later_endpoint_at_the_address_is_not_sought() -> None:
    port = Port()
    left = LeftBehind(port, D, SILENCE_TIMES)
    left.reset(BEFORE, View(2, 6, 0, (A,)), ())
    left.seek(0, 0)
    assert port.sought == [B, C]
    assert left.found(B.address, B.incarnation, 0, 0)
    assert not left.found(B.address, 77, 0, 0)
    assert port.sought == [C]
    left.clear()
    assert port.sought == []


def test_a_member_that_is_out_tells_those_that_may_count_on_it() -> None:
    port = Port()
    left = LeftBehind(port, D, SILENCE_TIMES)
    view = View(2, 6, 0, (C,))
    left.pass_on(view, BEFORE, A.incarnation)
    assert port.sent == [(1, Expelled(view, B.incarnation, RESET))]
    port.sent.clear()
    left.say_gone((A, B), A.incarnation)
    assert port.sent == [(B.address, Gone())]
