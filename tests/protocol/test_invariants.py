"""The checkers of `orcalike.simulator` are checked: each finds the histories that break its invariant."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orcalike.simulator.checkers import CHECKERS
from orcalike.simulator.checkers.facts import ALL, MAJORITY, Installed, Violation, body_of
from orcalike.simulator.checkers.monitor import Monitor

A, B, C, D, W = 0xA, 0xB, 0xC, 0xD, 0xE
History = Callable[[Monitor], None]


def view(number: int, *members: int, lineage: int = 1, ballot: int = 0) -> Installed:
    return Installed((lineage, number, ballot), members, frozenset({W} & set(members)))


V2, V3, V4 = view(2, A, B, C), view(3, A, B, C), view(3, A, B)


def group(monitor: Monitor, degree: int = 1) -> None:
    """A, B and C are in one view; A has cast four times, and B once."""
    for member in (A, B, C):
        monitor.view(member, V2, 1, 1)
        monitor.state(member, V2, 7)
    for sender in (A, A, A, A, B):
        cast(monitor, sender, degree)


def cast(monitor: Monitor, sender: int, degree: int = 1) -> None:
    number = monitor.facts.sent.get(sender, 0) + 1
    monitor.cast(sender, body_of(sender, number, 8), degree)


def deliver(
    monitor: Monitor,
    members: str,
    seqno: int,
    number: int,
    sender: int = A,
    holders: int | None = 3,
) -> None:
    """The cast with that number is delivered at these members, named by their letters."""
    for name in members:
        monitor.deliver(int(name, 16), (seqno, 0), sender, body_of(sender, number, 8), holders)


def deliver_one(monitor: Monitor, members: str, seqno: int, holders: int | None = 3) -> None:
    deliver(monitor, members, seqno, seqno, A, holders)


# I1


def another_cast(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    deliver(monitor, "B", 1, 2)


def another_sender(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    deliver(monitor, "B", 1, 1, B)


def another_cast_than_the_dead(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    monitor.die(A)
    monitor.view(B, view(3, B, C), 1, 1)
    deliver(monitor, "B", 1, 1, B)


def another_cast_behind_it_in_the_next_view(monitor: Monitor) -> None:
    cast(monitor, C, 0)
    deliver(monitor, "A", 1, 1, C)
    deliver(monitor, "A", 2, 1)
    monitor.die(A)
    monitor.view(B, view(3, B, C), 1, 1)
    deliver(monitor, "B", 1, 1, B)


# I2


def backwards(monitor: Monitor) -> None:
    deliver(monitor, "A", 2, 1)
    deliver(monitor, "A", 1, 2)


def a_gap(monitor: Monitor) -> None:
    deliver_one(monitor, "A", 1)
    deliver_one(monitor, "A", 2)
    deliver_one(monitor, "B", 2)


def before_any_view(monitor: Monitor) -> None:
    deliver(monitor, "D", 1, 1)


def part_of_a_packet(monitor: Monitor) -> None:
    monitor.deliver(A, (1, 1), A, body_of(A, 1, 8))


# I3


def twice_in_a_row(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    deliver(monitor, "A", 2, 1)


def at_two_places(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    deliver(monitor, "B", 2, 1)


def again_after_the_sequencer_died(monitor: Monitor) -> None:
    deliver(monitor, "AB", 1, 1)
    monitor.die(A)
    monitor.view(B, view(3, B, C), 2, 2)
    deliver(monitor, "B", 2, 1)


def elsewhere_than_at_the_dead(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    monitor.die(A)
    monitor.view(B, view(3, B, C), 1, 2)
    deliver(monitor, "B", 3, 1)


# I4


def one_missing(monitor: Monitor) -> None:
    for number in (1, 2, 3, 4):
        deliver_one(monitor, "ABC", number)
    monitor.finish([A, B, C])


def missing_at_one(monitor: Monitor) -> None:
    for number in (1, 2, 3, 4):
        deliver_one(monitor, "ABC", number)
    deliver(monitor, "AC", 5, 1, B)
    monitor.finish([A, B, C])


def none_at_all(monitor: Monitor) -> None:
    monitor.finish([A])


# I5


def never_cast(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 9)


def other_bytes(monitor: Monitor) -> None:
    monitor.deliver(A, (1, 0), A, body_of(A, 1, 8) + b"x")


def of_another_member(monitor: Monitor) -> None:
    monitor.deliver(B, (1, 0), C, body_of(A, 1, 8))


# I6


def the_second_first(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 2)


def one_left_out(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    deliver(monitor, "A", 2, 3)


def the_first_again_after_the_second(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    deliver(monitor, "A", 2, 2)
    deliver(monitor, "A", 3, 1)


# I7


def before_its_cause(monitor: Monitor) -> None:
    deliver(monitor, "B", 3, 1)
    cast(monitor, B)
    deliver(monitor, "A", 2, 2, B)


def at_its_cause(monitor: Monitor) -> None:
    deliver(monitor, "B", 3, 1)
    cast(monitor, B)
    deliver(monitor, "C", 3, 2, B)


def before_its_senders_own(monitor: Monitor) -> None:
    deliver(monitor, "A", 5, 1)
    cast(monitor, A)
    deliver(monitor, "C", 4, 5)


# I8


def acknowledged_by_one(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1, holders=1)


def acknowledged_by_no_majority(monitor: Monitor) -> None:
    cast(monitor, C, MAJORITY)
    deliver(monitor, "C", 1, 1, C, holders=1)


def acknowledged_and_not_taken_over(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    monitor.die(A)
    monitor.view(B, view(3, B, C), 1, 1)


def acknowledged_two_views_ago(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    monitor.view(B, V3, 1, 2)
    monitor.view(B, view(4, A, B), 1, 1)


# I9


def acknowledged_and_gone(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    monitor.die(A)
    monitor.finish([B, C])


def acknowledged_and_gone_at_one(monitor: Monitor) -> None:
    deliver(monitor, "AB", 1, 1)
    monitor.die(A)
    monitor.finish([B, C])


def acknowledged_by_a_member_that_left(monitor: Monitor) -> None:
    deliver(monitor, "B", 1, 1, B)
    monitor.leave(B)
    monitor.exit(B, "left")
    monitor.finish([A, C])


# I10


def readable_at_one(monitor: Monitor) -> None:
    deliver(monitor, "B", 1, 1, holders=1)


def readable_before_all(monitor: Monitor) -> None:
    cast(monitor, C, ALL)
    deliver(monitor, "B", 1, 1, C, holders=2)


def read_and_not_taken_over(monitor: Monitor) -> None:
    deliver(monitor, "B", 1, 1)
    monitor.die(B)
    monitor.view(A, view(3, A, C), 1, 1)


# I11


def fewer_than_others(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    monitor.view(A, V3)
    monitor.view(B, V3)


def more_than_others(monitor: Monitor) -> None:
    monitor.view(A, V3)
    deliver(monitor, "B", 1, 1)
    monitor.view(B, V3)


def a_view_left_out(monitor: Monitor) -> None:
    monitor.view(A, view(4, A, B, C))


# I12


def of_the_view_before(monitor: Monitor) -> None:
    monitor.view(A, V3, 5, 5)
    deliver(monitor, "A", 4, 1)


def of_the_view_before_at_another(monitor: Monitor) -> None:
    monitor.view(A, V3, 2, 2)
    monitor.view(B, V3)
    deliver(monitor, "B", 1, 1)


def of_two_views_before(monitor: Monitor) -> None:
    monitor.view(A, V3, 2, 2)
    monitor.view(A, view(4, A, B, C), 3, 3)
    deliver(monitor, "A", 1, 1)


def of_a_member_of_no_view(monitor: Monitor) -> None:
    cast(monitor, D)
    deliver(monitor, "A", 1, 1, D)


# I13


def an_older_view(monitor: Monitor) -> None:
    monitor.view(A, view(1, A))


def other_members(monitor: Monitor) -> None:
    monitor.view(A, V3)
    monitor.view(B, view(3, A, B))


def without_oneself(monitor: Monitor) -> None:
    monitor.view(A, view(3, B, C))


def a_member_twice(monitor: Monitor) -> None:
    monitor.view(A, view(3, A, B, B))


def after_it_was_out(monitor: Monitor) -> None:
    monitor.exit(A, "left")
    monitor.view(A, V3)


# I14


def elsewhere_in_the_order(monitor: Monitor) -> None:
    monitor.view(A, V3, 4, 4)
    monitor.view(B, V3, 5, 5)


def before_what_was_delivered(monitor: Monitor) -> None:
    deliver(monitor, "A", 3, 1)
    monitor.view(A, V3, 3, 3)


def before_what_all_delivered(monitor: Monitor) -> None:
    deliver(monitor, "AB", 3, 1)
    monitor.view(B, V3, 2, 4)


# I15


def two_at_once(monitor: Monitor) -> None:
    monitor.view(A, view(3, A, B))
    monitor.view(C, view(3, C, ballot=1))


def of_a_minority(monitor: Monitor) -> None:
    monitor.view(C, view(3, C))


def half_without_the_oldest(monitor: Monitor) -> None:
    for member in (A, B):
        monitor.view(member, view(3, A, B))
    monitor.view(B, view(4, B))


def too_few_for_the_degree(monitor: Monitor) -> None:
    monitor.facts.least = 1
    monitor.view(D, view(2, A, B, C, D, W))
    monitor.view(D, view(3, B, C, D))


def the_state_left_behind(monitor: Monitor) -> None:
    for member in (W, A, B):
        monitor.view(member, view(3, W, A, B))
    deliver_one(monitor, "AB", 1)
    monitor.leave(A)
    monitor.promise(A, (1, 3, 0))
    monitor.view(W, view(4, W))


# I16


def after_the_next_view(monitor: Monitor) -> None:
    monitor.view(A, V4, 1, 1)
    deliver(monitor, "C", 1, 1)


def a_write_of_its_own_after_the_next_view(monitor: Monitor) -> None:
    cast(monitor, C)
    monitor.view(B, V4, 1, 2)
    deliver(monitor, "C", 2, 1, C)


def two_views_later(monitor: Monitor) -> None:
    monitor.view(A, V4, 1, 1)
    monitor.view(A, view(4, A, B), 1, 1)
    deliver(monitor, "C", 1, 1)


# I17


def another_state(monitor: Monitor) -> None:
    monitor.state(D, V2, 8)


def no_state_if_others_have_one(monitor: Monitor) -> None:
    monitor.state(D, V2, 0)


def another_state_one_view_later(monitor: Monitor) -> None:
    monitor.state(A, V3, 1)
    monitor.state(D, V3, 2)


# I27


def too_many_packets(monitor: Monitor) -> None:
    monitor.gauge(A, 9, 8, 0, 100)


def too_many_bytes(monitor: Monitor) -> None:
    monitor.gauge(A, 1, 8, 101, 100)


def one_packet_too_many(monitor: Monitor) -> None:
    monitor.gauge(A, 8, 8, 100, 100)
    monitor.gauge(B, 1, 0, 0, 100)


# I28


def in_another_view(monitor: Monitor) -> None:
    monitor.view(A, V3)
    monitor.finish([A, B, C])


def a_dead_member(monitor: Monitor) -> None:
    monitor.finish([A, B])


def at_another_place(monitor: Monitor) -> None:
    deliver(monitor, "A", 1, 1)
    monitor.finish([A, B, C])


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
    "I12": [
        of_the_view_before,
        of_the_view_before_at_another,
        of_two_views_before,
        of_a_member_of_no_view,
    ],
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
    monitor = Monitor(checkers=[cls for cls in CHECKERS if cls.id == id_])
    group(monitor)
    with pytest.raises(Violation) as caught:
        history(monitor)
    assert caught.value.id == id_


def test_each_invariant_has_its_histories() -> None:
    assert set(MUST_FAIL) == {cls.id for cls in CHECKERS}
    assert min(map(len, MUST_FAIL.values())) >= 3


def test_a_history_of_which_nothing_is_wrong() -> None:
    """The sequencer dies, one is expelled, one joins: no checker objects."""
    monitor = Monitor(least=1)
    group(monitor)
    deliver_one(monitor, "ABC", 1)
    deliver_one(monitor, "AB", 2)
    monitor.die(A)
    monitor.promise(B, V2.identity)
    monitor.promise(C, V2.identity)
    deliver_one(monitor, "C", 2)
    for member in (B, C):
        monitor.view(member, view(3, B, C), 3, 4)
        monitor.state(member, view(3, B, C), 9)
    deliver_one(monitor, "BC", 3, holders=2)
    deliver(monitor, "BC", 4, 1, B, holders=2)
    joined = view(4, B, C, D)
    for member in (B, C):
        monitor.promise(member, (1, 3, 0))
    for member in (B, C, D):
        if member == D:
            monitor.take_state(D, (4, 0), {A: 3, B: 1})
        monitor.view(member, joined, None if member == D else 5, None if member == D else 5)
        monitor.state(member, joined, 10)
    monitor.gauge(B, 4, 4, 10, 10)
    monitor.finish([B, C, D])
    assert monitor.delivered == 10


def test_with_degree_0_a_write_may_be_lost_with_the_sequencer() -> None:
    """H4: its place, and its cast, may come again after it."""
    monitor = Monitor()
    group(monitor, degree=0)
    deliver(monitor, "A", 1, 1, holders=1)
    monitor.die(A)
    for member in (B, C):
        monitor.promise(member, V2.identity)
    for member in (B, C):
        monitor.view(member, view(3, B, C), 1, 1)
    deliver(monitor, "BC", 1, 1, B, holders=2)
    monitor.finish([B, C])
    assert monitor.delivered == 3
