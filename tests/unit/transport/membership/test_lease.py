"""Leases: when a coordinator may decide without a member, and which deaths a member vouches for."""

from __future__ import annotations

from orcalike.transport.membership.lease import Leases, span_of, window_of

D = 500_000_000


def test_no_lease_is_over_before_the_driver_has_said_what_it_granted() -> None:
    leases = Leases(D)
    leases.end()
    assert leases.over_at(7) is None


def test_a_lease_is_over_one_span_after_it_was_granted() -> None:
    leases = Leases(D)
    leases.end()
    leases.ended([(7, 1_000)])
    assert leases.over_at(7) == 1_000 + span_of(D)
    assert leases.over_at(8) == 0, "it was granted none"


def test_what_was_granted_is_asked_anew_each_time() -> None:
    leases = Leases(D)
    leases.end()
    leases.ended([(7, 1_000)])
    leases.end()
    assert leases.over_at(7) is None


def test_a_silent_member_holds_a_decision_up_for_little_more_than_its_silence() -> None:
    assert window_of(D) + span_of(D) <= 12 * D // 10


def test_a_lease_outlasts_three_beats() -> None:
    """Else a member that missed none could not vouch: an echo is two periods old at most."""
    assert span_of(D) > 3 * (D // 5)
