"""The checkers of `orcalike.testing` are checked: each finds the histories that break its invariant."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orcalike.simulator.checkers import CHECKERS
from orcalike.simulator.checkers.facts import ALL, MAJORITY, Installed, Violation, body_of
from orcalike.simulator.checkers.monitor import Judge

A, B, C, D, W = 0xA, 0xB, 0xC, 0xD, 0xE
History = Callable[[Judge], None]


def view(number: int, *members: int, lineage: int = 1, ballot: int = 0) -> Installed:
    return Installed((lineage, number, ballot), members, frozenset({W} & set(members)))


V2, V3, V4 = view(2, A, B, C), view(3, A, B, C), view(3, A, B)


def group(judge: Judge, degree: int = 1) -> None:
    """A, B and C are in one view; A has cast four times, and B once."""
    for member in (A, B, C):
        judge.view(member, V2, 1, 1)
        judge.state(member, V2, 7)
    for sender in (A, A, A, A, B):
        cast(judge, sender, degree)


def cast(judge: Judge, sender: int, degree: int = 1) -> None:
    number = judge.facts.sent.get(sender, 0) + 1
    judge.cast(sender, body_of(sender, number, 8), degree)


def deliver(
    judge: Judge, members: str, seqno: int, number: int, sender: int = A, holders: int | None = 3
) -> None:
    """The cast with that number is delivered at these members, named by their letters."""
    for name in members:
        judge.deliver(int(name, 16), (seqno, 0), sender, body_of(sender, number, 8), holders)


def deliver_one(judge: Judge, members: str, seqno: int, holders: int | None = 3) -> None:
    deliver(judge, members, seqno, seqno, A, holders)


# I1


def another_cast(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    deliver(judge, "B", 1, 2)


def another_sender(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    deliver(judge, "B", 1, 1, B)


def another_cast_than_the_dead(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    judge.die(A)
    judge.view(B, view(3, B, C), 1, 1)
    deliver(judge, "B", 1, 1, B)


def another_cast_behind_it_in_the_next_view(judge: Judge) -> None:
    cast(judge, C, 0)
    deliver(judge, "A", 1, 1, C)
    deliver(judge, "A", 2, 1)
    judge.die(A)
    judge.view(B, view(3, B, C), 1, 1)
    deliver(judge, "B", 1, 1, B)


# I2


def backwards(judge: Judge) -> None:
    deliver(judge, "A", 2, 1)
    deliver(judge, "A", 1, 2)


def a_gap(judge: Judge) -> None:
    deliver_one(judge, "A", 1)
    deliver_one(judge, "A", 2)
    deliver_one(judge, "B", 2)


def before_any_view(judge: Judge) -> None:
    deliver(judge, "D", 1, 1)


def part_of_a_packet(judge: Judge) -> None:
    judge.deliver(A, (1, 1), A, body_of(A, 1, 8))


# I3


def twice_in_a_row(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    deliver(judge, "A", 2, 1)


def at_two_places(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    deliver(judge, "B", 2, 1)


def again_after_the_sequencer_died(judge: Judge) -> None:
    deliver(judge, "AB", 1, 1)
    judge.die(A)
    judge.view(B, view(3, B, C), 2, 2)
    deliver(judge, "B", 2, 1)


def elsewhere_than_at_the_dead(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    judge.die(A)
    judge.view(B, view(3, B, C), 1, 2)
    deliver(judge, "B", 3, 1)


# I4


def one_missing(judge: Judge) -> None:
    for number in (1, 2, 3, 4):
        deliver_one(judge, "ABC", number)
    judge.finish([A, B, C])


def missing_at_one(judge: Judge) -> None:
    for number in (1, 2, 3, 4):
        deliver_one(judge, "ABC", number)
    deliver(judge, "AC", 5, 1, B)
    judge.finish([A, B, C])


def none_at_all(judge: Judge) -> None:
    judge.finish([A])


# I5


def never_cast(judge: Judge) -> None:
    deliver(judge, "A", 1, 9)


def other_bytes(judge: Judge) -> None:
    judge.deliver(A, (1, 0), A, body_of(A, 1, 8) + b"x")


def of_another_member(judge: Judge) -> None:
    judge.deliver(B, (1, 0), C, body_of(A, 1, 8))


# I6


def the_second_first(judge: Judge) -> None:
    deliver(judge, "A", 1, 2)


def one_left_out(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    deliver(judge, "A", 2, 3)


def the_first_again_after_the_second(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    deliver(judge, "A", 2, 2)
    deliver(judge, "A", 3, 1)


# I7


def before_its_cause(judge: Judge) -> None:
    deliver(judge, "B", 3, 1)
    cast(judge, B)
    deliver(judge, "A", 2, 2, B)


def at_its_cause(judge: Judge) -> None:
    deliver(judge, "B", 3, 1)
    cast(judge, B)
    deliver(judge, "C", 3, 2, B)


def before_its_senders_own(judge: Judge) -> None:
    deliver(judge, "A", 5, 1)
    cast(judge, A)
    deliver(judge, "C", 4, 5)


# I8


def acknowledged_by_one(judge: Judge) -> None:
    deliver(judge, "A", 1, 1, holders=1)


def acknowledged_by_no_majority(judge: Judge) -> None:
    cast(judge, C, MAJORITY)
    deliver(judge, "C", 1, 1, C, holders=1)


def acknowledged_and_not_taken_over(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    judge.die(A)
    judge.view(B, view(3, B, C), 1, 1)


def acknowledged_two_views_ago(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    judge.view(B, V3, 1, 2)
    judge.view(B, view(4, A, B), 1, 1)


# I9


def acknowledged_and_gone(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    judge.die(A)
    judge.finish([B, C])


def acknowledged_and_gone_at_one(judge: Judge) -> None:
    deliver(judge, "AB", 1, 1)
    judge.die(A)
    judge.finish([B, C])


def acknowledged_by_a_member_that_left(judge: Judge) -> None:
    deliver(judge, "B", 1, 1, B)
    judge.leave(B)
    judge.exit(B, "left")
    judge.finish([A, C])


# I10


def readable_at_one(judge: Judge) -> None:
    deliver(judge, "B", 1, 1, holders=1)


def readable_before_all(judge: Judge) -> None:
    cast(judge, C, ALL)
    deliver(judge, "B", 1, 1, C, holders=2)


def read_and_not_taken_over(judge: Judge) -> None:
    deliver(judge, "B", 1, 1)
    judge.die(B)
    judge.view(A, view(3, A, C), 1, 1)


# I11


def fewer_than_others(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    judge.view(A, V3)
    judge.view(B, V3)


def more_than_others(judge: Judge) -> None:
    judge.view(A, V3)
    deliver(judge, "B", 1, 1)
    judge.view(B, V3)


def a_view_left_out(judge: Judge) -> None:
    judge.view(A, view(4, A, B, C))


# I12


def of_the_view_before(judge: Judge) -> None:
    judge.view(A, V3, 5, 5)
    deliver(judge, "A", 4, 1)


def of_the_view_before_at_another(judge: Judge) -> None:
    judge.view(A, V3, 2, 2)
    judge.view(B, V3)
    deliver(judge, "B", 1, 1)


def of_two_views_before(judge: Judge) -> None:
    judge.view(A, V3, 2, 2)
    judge.view(A, view(4, A, B, C), 3, 3)
    deliver(judge, "A", 1, 1)


# I13


def an_older_view(judge: Judge) -> None:
    judge.view(A, view(1, A))


def other_members(judge: Judge) -> None:
    judge.view(A, V3)
    judge.view(B, view(3, A, B))


def without_oneself(judge: Judge) -> None:
    judge.view(A, view(3, B, C))


def a_member_twice(judge: Judge) -> None:
    judge.view(A, view(3, A, B, B))


def after_it_was_out(judge: Judge) -> None:
    judge.exit(A, "left")
    judge.view(A, V3)


# I14


def elsewhere_in_the_order(judge: Judge) -> None:
    judge.view(A, V3, 4, 4)
    judge.view(B, V3, 5, 5)


def before_what_was_delivered(judge: Judge) -> None:
    deliver(judge, "A", 3, 1)
    judge.view(A, V3, 3, 3)


def before_what_all_delivered(judge: Judge) -> None:
    deliver(judge, "AB", 3, 1)
    judge.view(B, V3, 2, 4)


# I15


def two_at_once(judge: Judge) -> None:
    judge.view(A, view(3, A, B))
    judge.view(C, view(3, C, ballot=1))


def of_a_minority(judge: Judge) -> None:
    judge.view(C, view(3, C))


def half_without_the_oldest(judge: Judge) -> None:
    for member in (A, B):
        judge.view(member, view(3, A, B))
    judge.view(B, view(4, B))


def too_few_for_the_degree(judge: Judge) -> None:
    judge.facts.least = 1
    judge.view(D, view(2, A, B, C, D, W))
    judge.view(D, view(3, B, C, D))


def the_state_left_behind(judge: Judge) -> None:
    for member in (W, A, B):
        judge.view(member, view(3, W, A, B))
    deliver_one(judge, "AB", 1)
    judge.leave(A)
    judge.promise(A, (1, 3, 0))
    judge.view(W, view(4, W))


# I16


def after_the_next_view(judge: Judge) -> None:
    judge.view(A, V4, 1, 1)
    deliver(judge, "C", 1, 1)


def a_write_of_its_own_after_the_next_view(judge: Judge) -> None:
    cast(judge, C)
    judge.view(B, V4, 1, 2)
    deliver(judge, "C", 2, 1, C)


def two_views_later(judge: Judge) -> None:
    judge.view(A, V4, 1, 1)
    judge.view(A, view(4, A, B), 1, 1)
    deliver(judge, "C", 1, 1)


# I17


def another_state(judge: Judge) -> None:
    judge.state(D, V2, 8)


def no_state_if_others_have_one(judge: Judge) -> None:
    judge.state(D, V2, 0)


def another_state_one_view_later(judge: Judge) -> None:
    judge.state(A, V3, 1)
    judge.state(D, V3, 2)


# I27


def too_many_packets(judge: Judge) -> None:
    judge.gauge(A, 9, 8, 0, 100)


def too_many_bytes(judge: Judge) -> None:
    judge.gauge(A, 1, 8, 101, 100)


def one_packet_too_many(judge: Judge) -> None:
    judge.gauge(A, 8, 8, 100, 100)
    judge.gauge(B, 1, 0, 0, 100)


# I28


def in_another_view(judge: Judge) -> None:
    judge.view(A, V3)
    judge.finish([A, B, C])


def a_dead_member(judge: Judge) -> None:
    judge.finish([A, B])


def at_another_place(judge: Judge) -> None:
    deliver(judge, "A", 1, 1)
    judge.finish([A, B, C])


MUST_FAIL: dict[str, list[History]] = {
    "I1": [
        another_cast,
        another_sender,
        another_cast_than_the_dead,
        another_cast_behind_it_in_the_next_view,
    ],
    "I2": [backwards, a_gap, before_any_view, part_of_a_packet],
    "I3": [
        twice_in_a_row,
        at_two_places,
        again_after_the_sequencer_died,
        elsewhere_than_at_the_dead,
    ],
    "I4": [one_missing, missing_at_one, none_at_all],
    "I5": [never_cast, other_bytes, of_another_member],
    "I6": [the_second_first, one_left_out, the_first_again_after_the_second],
    "I7": [before_its_cause, at_its_cause, before_its_senders_own],
    "I8": [
        acknowledged_by_one,
        acknowledged_by_no_majority,
        acknowledged_and_not_taken_over,
        acknowledged_two_views_ago,
    ],
    "I9": [acknowledged_and_gone, acknowledged_and_gone_at_one, acknowledged_by_a_member_that_left],
    "I10": [readable_at_one, readable_before_all, read_and_not_taken_over],
    "I11": [fewer_than_others, more_than_others, a_view_left_out],
    "I12": [of_the_view_before, of_the_view_before_at_another, of_two_views_before],
    "I13": [an_older_view, other_members, without_oneself, a_member_twice, after_it_was_out],
    "I14": [elsewhere_in_the_order, before_what_was_delivered, before_what_all_delivered],
    "I15": [
        two_at_once,
        of_a_minority,
        half_without_the_oldest,
        too_few_for_the_degree,
        the_state_left_behind,
    ],
    "I16": [after_the_next_view, a_write_of_its_own_after_the_next_view, two_views_later],
    "I17": [another_state, no_state_if_others_have_one, another_state_one_view_later],
    "I27": [too_many_packets, too_many_bytes, one_packet_too_many],
    "I28": [in_another_view, a_dead_member, at_another_place],
}
CASES = [(id_, history) for id_, histories in MUST_FAIL.items() for history in histories]


@pytest.mark.parametrize(
    ("id_", "history"), CASES, ids=lambda case: getattr(case, "__name__", case)
)
def test_a_broken_invariant_is_found(id_: str, history: History) -> None:
    """By its own checker alone, so that no other hides what it misses."""
    judge = Judge(checkers=[cls for cls in CHECKERS if cls.id == id_])
    group(judge)
    with pytest.raises(Violation) as caught:
        history(judge)
    assert caught.value.id == id_


def test_each_invariant_has_its_histories() -> None:
    assert set(MUST_FAIL) == {cls.id for cls in CHECKERS}
    assert min(map(len, MUST_FAIL.values())) >= 3


def test_a_history_of_which_nothing_is_wrong() -> None:
    """The sequencer dies, one is expelled, one joins: no checker objects."""
    judge = Judge(least=1)
    group(judge)
    deliver_one(judge, "ABC", 1)
    deliver_one(judge, "AB", 2)
    judge.die(A)
    judge.promise(B, V2.identity)
    judge.promise(C, V2.identity)
    deliver_one(judge, "C", 2)
    for member in (B, C):
        judge.view(member, view(3, B, C), 3, 4)
        judge.state(member, view(3, B, C), 9)
    deliver_one(judge, "BC", 3, holders=2)
    deliver(judge, "BC", 4, 1, B, holders=2)
    joined = view(4, B, C, D)
    for member in (B, C):
        judge.promise(member, (1, 3, 0))
    for member in (B, C, D):
        if member == D:
            judge.take_state(D, (4, 0), {A: 3, B: 1})
        judge.view(member, joined, None if member == D else 5, None if member == D else 5)
        judge.state(member, joined, 10)
    judge.gauge(B, 4, 4, 10, 10)
    judge.finish([B, C, D])
    assert judge.delivered == 10


def test_with_degree_0_a_write_may_be_lost_with_the_sequencer() -> None:
    """H4: its place, and its cast, may come again after it."""
    judge = Judge()
    group(judge, degree=0)
    deliver(judge, "A", 1, 1, holders=1)
    judge.die(A)
    for member in (B, C):
        judge.promise(member, V2.identity)
    for member in (B, C):
        judge.view(member, view(3, B, C), 1, 1)
    deliver(judge, "BC", 1, 1, B, holders=2)
    judge.finish([B, C])
    assert judge.delivered == 3
