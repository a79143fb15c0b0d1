"""The failure detector, on a clock that the test tells."""

from __future__ import annotations

from orcalike.transport.membership.detector import Detector

D = 100
A, B = 0xA, 0xB


def watching(*members: int, now: int = 0) -> Detector:
    detector = Detector(D)
    detector.watch(members, now)
    return detector


def test_nobody_is_watched_at_first() -> None:
    detector = Detector(D)
    assert detector.deadline is None
    assert not detector.check(1_000_000)
    assert not detector.silent


def test_who_is_silent_for_the_detection_time_is_suspected() -> None:
    detector = watching(A, B)
    assert detector.deadline == D
    detector.heard(B, 30)
    assert not detector.check(D - 1)
    assert detector.check(D)
    assert detector.silent == {A}


def test_who_is_heard_is_not_suspected() -> None:
    detector = watching(A, B)
    for now in range(0, 10 * D, D // 5):
        detector.heard(A, now)
        detector.heard(B, now)
        assert not detector.check(now)
    assert not detector.doubt


def test_the_deadline_is_the_first_silence_that_is_due() -> None:
    detector = watching(A, B)
    detector.heard(A, 40)
    detector.check(50)
    assert detector.deadline == D, "of B"
    detector.heard(B, 60)
    detector.check(70)
    assert detector.deadline == 40 + D, "of A"


def test_a_suspicion_ends_when_its_member_is_heard() -> None:
    detector = watching(A)
    assert detector.check(D)
    assert detector.deadline == D + D // 2, "it looks for a return"
    detector.heard(A, D + 10)
    assert detector.check(D + 20)
    assert not detector.silent
    assert detector.doubt, "the others may have gone on meanwhile"


def test_what_was_heard_earlier_changes_nothing() -> None:
    detector = watching(A, now=50)
    detector.heard(A, 20)
    assert not detector.check(50 + D - 1)
    assert detector.check(50 + D)


def test_strangers_are_not_heard() -> None:
    detector = watching(A)
    detector.heard(B, D)
    assert detector.check(D)
    assert detector.silent == {A}


def test_a_detector_that_was_late_begins_its_clocks_anew() -> None:
    """It was asleep itself, so the silence says nothing; but others may have gone on."""
    detector = watching(A, B)
    late = D + D // 2 + 1
    assert not detector.check(late)
    assert not detector.silent
    assert detector.doubt
    assert not detector.check(late + D - 1)
    assert detector.check(late + D)
    assert detector.silent == {A, B}


def test_a_detector_that_was_hardly_late_does_not() -> None:
    detector = watching(A)
    assert detector.check(D + D // 2)
    assert detector.silent == {A}


def test_who_was_silent_before_the_sleep_stays_so() -> None:
    detector = watching(A, B)
    detector.heard(B, 90)
    assert detector.check(D)
    assert not detector.check(10 * D)
    assert detector.silent == {A}


def test_others_are_watched_from_then_on() -> None:
    detector = watching(A)
    assert detector.check(D)
    detector.watch([B], D)
    assert not detector.silent
    assert not detector.doubt
    assert detector.deadline == 2 * D
    assert detector.check(2 * D)
    assert detector.silent == {B}
