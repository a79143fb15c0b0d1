"""The checkers are checked: each finds the history that breaks its promise, and no other does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.protocol.checkers import (
    Checker,
    Installed,
    JoinState,
    NoGap,
    SameOrder,
    SenderOrder,
    ViewSanity,
    Violation,
    VirtualSynchrony,
    Watch,
)

A, B, C, D = 0xA, 0xB, 0xC, 0xD


def view(number: int, *members: int, witness: int = 0) -> Installed:
    return Installed((1, number, 0), members, tuple(m for m in members if m != witness))


V1, V2, V3 = view(1, A), view(2, A, B), view(3, A, B, C)


def both(watch: Checker) -> None:
    """A and B are in one view, and A has cast x, y and z."""
    watch.view(A, V1)
    watch.view(A, V2)
    watch.state(B, [V1, V2])
    watch.view(B, V2)
    for body in (b"x", b"y", b"z"):
        watch.cast(A, body)


def deliver(watch: Checker, member: int, seqno: int, body: bytes, source: int = A) -> None:
    watch.deliver(member, (seqno, 0), source, body)


def another_order(watch: Checker) -> None:
    deliver(watch, A, 1, b"x")
    deliver(watch, B, 1, b"y")


def another_source(watch: Checker) -> None:
    deliver(watch, A, 1, b"x")
    deliver(watch, B, 1, b"x", source=B)


def backwards(watch: Checker) -> None:
    deliver(watch, A, 2, b"x")
    deliver(watch, A, 1, b"y")


def same_place_twice(watch: Checker) -> None:
    deliver(watch, A, 1, b"x")
    deliver(watch, A, 1, b"x")


def a_gap(watch: Checker) -> None:
    deliver(watch, A, 1, b"x")
    deliver(watch, A, 2, b"y")
    deliver(watch, B, 2, b"y")


def a_gap_at_the_end(watch: Checker) -> None:
    deliver(watch, A, 1, b"x")
    watch.finish([A, B])


def before_any_view(watch: Checker) -> None:
    deliver(watch, C, 1, b"x")


def view_elsewhere_in_the_order(watch: Checker) -> None:
    deliver(watch, A, 1, b"x")
    watch.view(A, V3)
    watch.view(B, V3)


def from_nowhere(watch: Checker) -> None:
    deliver(watch, A, 1, b"never cast")


def of_another_sender(watch: Checker) -> None:
    deliver(watch, A, 1, b"x", source=B)


def not_fifo(watch: Checker) -> None:
    deliver(watch, A, 1, b"y")


def twice(watch: Checker) -> None:
    deliver(watch, A, 1, b"x")
    deliver(watch, A, 2, b"x")


def never_delivered(watch: Checker) -> None:
    deliver(watch, A, 1, b"x")
    deliver(watch, B, 1, b"x")
    watch.finish([A, B])


def another_set_in_the_view(watch: Checker) -> None:
    deliver(watch, A, 1, b"x")
    watch.view(A, V3)
    watch.view(B, V3)


def another_cast_in_the_view(watch: Checker) -> None:
    deliver(watch, A, 1, b"x")
    deliver(watch, B, 2, b"y")
    watch.view(A, V3)
    watch.view(B, V3)


def of_no_member_of_the_view(watch: Checker) -> None:
    deliver(watch, A, 1, b"x", source=C)


def views_go_back(watch: Checker) -> None:
    watch.view(B, V3)
    watch.view(B, V2)


def other_members_in_a_view(watch: Checker) -> None:
    watch.view(A, view(3, A, B))
    watch.view(B, view(3, B, A))


def not_in_ones_view(watch: Checker) -> None:
    watch.view(B, view(3, A, C))


def twice_in_a_view(watch: Checker) -> None:
    watch.view(B, view(3, A, B, A))


def a_view_after_leaving(watch: Checker) -> None:
    watch.exit(B)
    watch.view(B, V3)


def state_with_a_gap(watch: Checker) -> None:
    deliver(watch, A, 1, b"x")
    watch.view(A, V3)
    watch.state(C, [V1, V2, V3])
    watch.view(C, V3)


def state_of_another_view(watch: Checker) -> None:
    watch.view(A, V3)
    watch.state(C, [V1, V2])
    watch.view(C, V3)


def state_with_what_came_later(watch: Checker) -> None:
    watch.view(A, V3)
    deliver(watch, A, 1, b"x")
    watch.state(C, [V1, V2, V3, (1, 0, A, b"x")])
    watch.view(C, V3)


def no_state(watch: Checker) -> None:
    deliver(watch, A, 1, b"x")
    watch.view(A, V3)
    watch.view(C, V3)


MUST_FAIL: list[tuple[type[Checker], Callable[[Checker], None]]] = [
    (SameOrder, another_order),
    (SameOrder, another_source),
    (SameOrder, backwards),
    (SameOrder, same_place_twice),
    (NoGap, a_gap),
    (NoGap, a_gap_at_the_end),
    (NoGap, before_any_view),
    (NoGap, view_elsewhere_in_the_order),
    (SenderOrder, from_nowhere),
    (SenderOrder, of_another_sender),
    (SenderOrder, not_fifo),
    (SenderOrder, twice),
    (SenderOrder, never_delivered),
    (VirtualSynchrony, another_set_in_the_view),
    (VirtualSynchrony, another_cast_in_the_view),
    (VirtualSynchrony, of_no_member_of_the_view),
    (ViewSanity, views_go_back),
    (ViewSanity, other_members_in_a_view),
    (ViewSanity, not_in_ones_view),
    (ViewSanity, twice_in_a_view),
    (ViewSanity, a_view_after_leaving),
    (JoinState, state_with_a_gap),
    (JoinState, state_of_another_view),
    (JoinState, state_with_what_came_later),
    (JoinState, no_state),
]


class Only(Watch):
    """Only what one checker says counts."""

    def __init__(self, kind: type[Checker]) -> None:
        super().__init__()
        canon = NoGap()
        if kind is JoinState:
            self.checkers = [JoinState(canon), canon]
        else:
            self.checkers = [kind()]


@pytest.mark.parametrize(("kind", "history"), MUST_FAIL, ids=lambda value: value.__name__)
def test_a_broken_promise_is_found(kind: type[Checker], history: Callable[[Checker], None]) -> None:
    watch = Only(kind)
    both(watch)
    with pytest.raises(Violation, match=f"^{kind.__name__}: "):
        history(watch)


def test_each_checker_has_histories_that_it_must_not_pass() -> None:
    tested = [kind for kind, _ in MUST_FAIL]
    for checker in Watch().checkers:
        assert tested.count(type(checker)) >= 3


def test_a_right_history_passes() -> None:
    watch = Watch()
    both(watch)
    for seqno, body in ((1, b"x"), (2, b"y")):
        deliver(watch, A, seqno, body)
        deliver(watch, B, seqno, body)
    watch.view(A, V3)
    watch.view(B, V3)
    watch.state(C, [V1, V2, (1, 0, A, b"x"), (2, 0, A, b"y"), V3])
    watch.view(C, V3)
    for member in (A, C, B):
        deliver(watch, member, 5, b"z")
    watch.exit(B)
    watch.finish([A, C])
    assert watch.delivered == 7


def test_a_witness_begins_without_state() -> None:
    watch = Watch()
    both(watch)
    deliver(watch, A, 1, b"x")
    joined = view(3, A, B, C, witness=C)
    watch.view(A, joined)
    watch.view(C, joined)
    assert watch.delivered == 1
    with pytest.raises(Violation, match=r"^JoinState: "):
        watch.view(D, view(4, A, B, C, D, witness=C))  # this one has no state, and is no witness
