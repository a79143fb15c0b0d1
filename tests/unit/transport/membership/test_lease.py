"""Leases: when a coordinator may decide without a member, and which deaths a member vouches for."""

from __future__ import annotations

from orcalike.transport.membership.lease import ALL_WATCHED, ENDS_MAX, Leases, span_of, window_of
from orcalike.transport.view import Member, View

D = 500_000_000


def test_no_lease_is_over_before_the_driver_has_said_what_it_granted() -> None:
    leases = Leases(D)
    leases.end(0, ())
    assert leases.over_at(7) is None


def test_a_lease_is_over_one_span_after_it_was_granted() -> None:
    leases = Leases(D)
    leases.end(0, ())
    leases.ended([(7, 1_000)])
    assert leases.over_at(7) == 1_000 + span_of(D)
    assert leases.over_at(8) == 0, "it was granted none"


def test_a_member_that_stops_is_excused_soon_after_it_is_suspected() -> None:
    """Contact of a window ago grants a lease of a span: 1.2 D in all."""
    assert window_of(D) + span_of(D) == 6 * D // 5


def test_members_of_this_host_have_one_from_the_view_on() -> None:
    """Those elsewhere have none; what a beat has granted later counts."""
    me, near, far = (Member(f"tcp:{host}:1", number) for number, host in enumerate("aab", 7))
    leases = Leases(D)
    leases.begin(View(1, 1, 0, (me, near, far)), me, 5_000)
    leases.end(0, ())
    leases.ended([])
    assert leases.over_at(near.incarnation) == 5_000 + span_of(D)
    assert leases.over_at(far.incarnation) == 0
    leases.ended([(near.incarnation, 6_000)])
    assert leases.over_at(near.incarnation) == 6_000 + span_of(D)


def test_a_member_vouches_from_what_the_view_followed_from() -> None:
    """All others installed the view after it had spoken, and not after it had spoken again."""
    me = Member("unix:/a", 7)
    leases = Leases(D)
    members = (me, Member("unix:/b", 8), Member("unix:/c", 9))
    assert not leases.ended_at(8, 0)
    leases.begin(View(1, 1, 0, members), me, 500)
    assert not leases.ended_at(8, 500), "it has not said anything"
    assert leases.vouched() == set()
    leases.speak(1_000)
    leases.speak(9_000)
    assert not leases.ended_at(8, 1_000), "this is of the view to come"
    leases.begin(View(1, 2, 0, members), me, 10_000)
    assert leases.vouched() == {8}, "it had ended before this member had the view"
    assert leases.ended_at(9, 999 + span_of(D))
    assert not leases.ended_at(9, 1_000 + span_of(D))
    leases.speak(2_000 + span_of(D))
    leases.begin(View(1, 3, 0, members[::2]), me, 2_001 + span_of(D))
    assert leases.vouched() == {9}


def test_a_lease_of_the_view_before_counts() -> None:
    """L waits for it as well; but not where a view in memory comes in between, in which none is granted."""
    me = Member("unix:/a", 7)
    members = (me, *(Member(f"unix:/{number}", number) for number in (8, 9, 10)))
    views = [View(1, number, 0, members) for number in range(1, 6)]
    leases = Leases(D)
    for now, view in enumerate(views[:2]):
        leases.begin(view, me, now)
    assert leases.ended_at(8, 10 * D, views[0].key, 3)
    assert not leases.ended_at(9, 10 * D, views[0].key, span_of(D))
    assert not leases.ended_at(10, 10 * D, views[2].key, 3), "this member knows of no such view"
    leases.begin(views[2], me, 11 * D)
    assert leases.vouched() == {10}
    leases.in_memory = True
    leases.begin(views[3], me, 12 * D)
    assert not leases.ended_at(8, 13 * D, views[2].key, 3)
    leases.in_memory = False
    leases.begin(views[4], me, 14 * D)
    assert not leases.ended_at(8, 15 * D, views[2].key, 3)
    assert not leases.ended_at(8, 15 * D, 0, 3)
    many = tuple(Member(f"unix:/{number}", number) for number in range(7, 8 + ALL_WATCHED))
    leases.begin(View(1, 6, 0, many), me, 16 * D)
    assert leases.ended_at(8, 17 * D, View(1, 6, 0, many).key, 3)
    assert not leases.ended_at(8, 17 * D, views[4].key, 3), "it may be no heartbeat peer any more"


def test_the_end_of_a_joiner_is_remembered_until_a_view_has_it() -> None:
    """Of other processes the last ones are; one on another host ends for no member here."""
    me, near, far = (Member(f"tcp:{host}:1", number) for number, host in enumerate("aab", 7))
    leases = Leases(D)
    for ended in (near, far):
        leases.ended_at(ended.incarnation, 0)
    leases.begin(View(1, 1, 0, (me,)), me, 500)
    assert leases.seen_to_end() == set()
    leases.begin(View(1, 2, 0, (me, near, far)), me, 600)
    assert leases.seen_to_end() == {near.incarnation}
    for other in range(100, 100 + ENDS_MAX):
        leases.ended_at(other, 700)
    assert leases.seen_to_end() == set()


def test_what_was_granted_is_asked_anew_each_time() -> None:
    leases = Leases(D)
    leases.end(0, ())
    leases.ended([(7, 1_000)])
    leases.end(0, ())
    assert leases.over_at(7) is None


def test_a_silent_member_holds_a_decision_up_for_little_more_than_its_silence() -> None:
    assert window_of(D) + span_of(D) <= 12 * D // 10


def test_a_lease_outlasts_three_beats() -> None:
    """Else a member that missed none could not vouch: an echo is two periods old at most."""
    assert span_of(D) > 3 * (D // 5)


def test_in_memory_those_that_it_has_proposed_to_are_waited_for() -> None:
    """And no others, though none was granted a lease by a beat; elsewhere beats alone count."""
    leases = Leases(D)
    for leases.in_memory in (True, False):
        leases.end(3_000, [7])
        leases.ended([])
        assert leases.over_at(7) == (3_000 + span_of(D) if leases.in_memory else 0)
        assert leases.over_at(8) == 0
