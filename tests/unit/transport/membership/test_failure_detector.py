"""The failure detector, on a clock that the test tells."""

from __future__ import annotations

from orcalike.transport.membership.failure_detector import (
    SILENCE_MIN_NS,
    SILENCE_TIMES,
    FailureDetector,
)

D = 100
A, B = 0xA, 0xB


def watching(*members: int, now: int = 0) -> FailureDetector:
    detector = FailureDetector(D)
    detector.watch(members, now)
    return detector


def test_no_member_is_watched_at_first() -> None:
    detector = FailureDetector(D)
    assert detector.deadline is None
    assert not detector.check(1_000_000)
    assert not detector.silent


def test_a_member_that_is_silent_for_the_detection_time_is_suspected() -> None:
    detector = watching(A, B)
    assert detector.deadline == D
    detector.heard(B, 30)
    assert not detector.check(D - 1)
    assert detector.check(D)
    assert detector.silent == {A}


def test_a_member_that_is_heard_is_not_suspected() -> None:
    detector = watching(A, B)
    for now in range(0, 10 * D, D // 5):
        detector.heard(A, now)
        detector.heard(B, now)
        assert not detector.check(now)


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


def test_what_was_heard_earlier_changes_nothing() -> None:
    detector = watching(A, now=50)
    detector.heard(A, 20)
    assert not detector.check(50 + D - 1)
    assert detector.check(50 + D)


def test_non_members_are_not_heard() -> None:
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
    assert not detector.check(late + D - 1)
    assert detector.check(late + D)
    assert detector.silent == {A, B}


def test_a_detector_that_was_hardly_late_does_not() -> None:
    detector = watching(A)
    assert detector.check(D + D // 2)
    assert detector.silent == {A}


def test_a_member_that_was_silent_before_the_sleep_stays_so() -> None:
    detector = watching(A, B)
    detector.heard(B, 90)
    assert detector.check(D)
    assert not detector.check(10 * D)
    assert detector.silent == {A}


# Processes that live and are silent: the kernel's word comes before each check.


def test_a_process_that_lives_may_be_silent_for_long() -> None:
    """On a busy machine it gets no processor; one that the kernel says nothing of is out after D."""
    detection = SILENCE_MIN_NS
    detector = FailureDetector(detection)
    detector.watch([A, B], 0)
    for now in range(detection, SILENCE_TIMES * detection, detection // 2):
        assert A in detector.quiet(now)
        detector.lives(A)
        changed = detector.check(now)
        assert (changed, detector.silent) == (now == detection, {B})
        assert detector.deadline == now + detection // 2
    now += detection // 2
    detector.lives(A)
    assert detector.check(now)
    assert detector.silent == {A, B}


def test_the_longest_silence_is_some_seconds_even_if_detection_is_fast() -> None:
    assert FailureDetector(1).silence_max == SILENCE_MIN_NS >= 1_000_000_000
    assert FailureDetector(SILENCE_MIN_NS).silence_max == SILENCE_TIMES * SILENCE_MIN_NS


def test_a_process_that_is_stopped_in_its_silence_is_suspected_at_the_next_check() -> None:
    detector = watching(A)
    detector.lives(A)
    assert not detector.check(D)
    assert detector.check(D + D // 2), "the word before counted for that check only"
    assert detector.silent == {A}


def test_a_word_from_before_does_not_count() -> None:
    detector = watching(A)
    detector.lives(A)
    assert detector.quiet(D) == {A}, "asked again"
    assert detector.check(D)


def test_a_suspicion_ends_with_a_beat_and_not_with_the_kernels_word() -> None:
    detector = watching(A)
    assert detector.check(D)
    assert not detector.quiet(D + 1), "it is suspected already"
    detector.lives(A)
    assert not detector.check(D + D // 2)
    assert detector.silent == {A}


def test_a_process_that_beats_again_is_quiet_no_more() -> None:
    detector = watching(A)
    detector.lives(A)
    assert not detector.check(D)
    detector.heard(A, D + 10)
    assert not detector.check(D + 20)
    assert detector.deadline == 2 * D + 10


def test_silence_while_nothing_could_be_heard_does_not_count() -> None:
    detector = watching(A, B)
    detector.excuse(A, 70)
    detector.excuse(A, 60)
    detector.excuse(0xC, 60)  # not watched
    assert detector.quiet(D) == {B}
    assert detector.check(D)
    assert detector.silent == {B}
    assert detector.check(D + 70)
    assert detector.silent == {A, B}


def test_an_excuse_ends_with_what_it_was_for() -> None:
    detector = watching(A)
    detector.excuse(A, 70)
    detector.watch([A], 10)
    assert detector.check(D + 10)


def test_others_are_watched_from_then_on() -> None:
    detector = watching(A)
    assert detector.check(D)
    detector.watch([B], D)
    assert not detector.silent
    assert detector.deadline == 2 * D
    assert detector.check(2 * D)
    assert detector.silent == {B}
