"""Exit codes and last words of a run (docs/command-line.md)."""

from __future__ import annotations

import errno
import os

from orcalike.launcher.child import Exit
from orcalike.launcher.group_status import Loss
from orcalike.launcher.outcome import (
    Outcome,
    RankExit,
    Report,
    blocked_for_good,
    cannot_start,
    describe_witness,
    exit_code,
    failure,
    go_on_without_witness,
    output_lost,
    started_again,
    survived,
    witness_lost,
)


def test_exit_codes_are_a_shells() -> None:
    assert exit_code(7) == 7
    assert exit_code(-11) == 139


def test_words_for_a_failure() -> None:
    outcome = failure(RankExit(2, 4711, 1, 0.417), others_stopped=3)
    assert outcome.code == 1
    assert outcome.message == (
        "orcalike: rank 2 (pid 4711) failed first with exit code 1 after 0.42 s; 3 others stopped"
    )


def test_words_for_a_signal() -> None:
    outcome = failure(RankExit(0, 9, -11, 1.0), others_stopped=0)
    assert outcome.code == 139
    assert outcome.message == (
        "orcalike: rank 0 (pid 9) was killed first by SIGSEGV (exit code 139) after 1.00 s"
    )


def test_words_for_a_rank_of_another_host() -> None:
    failed = failure(RankExit(2, 4711, 1, 0.5, host="b"), others_stopped=0)
    assert "rank 2 (host b, pid 4711) failed first with exit code 1 after 0.50 s" in failed.message
    lost = failure(RankExit(2, 4711, -9, 0.5, host="b", lost="host b does not answer"), 1)
    assert lost == Outcome(
        137,
        "orcalike: rank 2 (host b, pid 4711) was lost first after 0.50 s: host b does not answer; 1 other stopped",
    )


def test_words_for_a_run_without_its_witness() -> None:
    gone = describe_witness(5, Exit(-9))
    assert gone == "the witness (pid 5) ended by SIGKILL (exit code 137)"
    assert describe_witness(5, Exit(-9, lost="no answer")) == "the witness was lost: no answer"
    goes_on = f"orcalike: {gone}; the ranks go on"
    ordered, kept = ", and one of them orders", "; if all end at once, their state is lost"
    assert go_on_without_witness(gone, orders=True, keeps=True) == goes_on + ordered + kept
    assert go_on_without_witness(gone, orders=False, keeps=False) == goes_on


def test_usage_error_found_by_a_rank() -> None:
    outcome = failure(RankExit(0, 9, 2, 1.0, Report("usage", "no module named 'x'")), 3)
    assert (outcome.code, outcome.message) == (2, "orcalike: no module named 'x'")


def test_witness_that_ends_too_early() -> None:
    outcome = witness_lost(5, Exit(-9))
    assert outcome.code == 70
    assert "witness (pid 5)" in outcome.message
    assert "SIGKILL" in outcome.message


def test_output_that_cannot_be_written() -> None:
    """A reader that has gone needs no words: it may be `head`."""
    gone, full = BrokenPipeError(errno.EPIPE, "x"), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert (output_lost(gone, 2).code, output_lost(gone, 2).message) == (141, "")
    assert output_lost(full, 2).code == 73
    words = "orcalike: standard output cannot be written: No space left on device"
    assert output_lost(full, 2).message == f"{words}; the ranks were stopped"
    assert output_lost(full, 0).message == words


def test_words_for_a_failure_that_is_survived() -> None:
    rank_exit = RankExit(1, 7, 3, 0.5)
    failed = "orcalike: rank 1 (pid 7) failed with exit code 3 after 0.50 s"
    assert survived(rank_exit, 3) == f"{failed}; 3 others go on"
    assert survived(rank_exit, 1) == f"{failed}; 1 other goes on"
    assert survived(rank_exit, 0) == f"{failed}; no other is left"


def test_words_for_starting_again() -> None:
    assert started_again("it ended", 0, 3, 0.0) == ("orcalike: it ended; restarting (1 of 3)")
    assert started_again("it ended", 1, 3, 0.5) == (
        "orcalike: it ended; restarting in 0.5 s (2 of 3)"
    )
    outcome = failure(RankExit(0, 9, 5, 1.0, restarts=2), others_stopped=0)
    assert outcome.message == (
        "orcalike: rank 0 (pid 9) failed with exit code 5 after 1.00 s; "
        "it had been started again 2 times"
    )


def test_words_for_a_run_that_is_blocked_for_good() -> None:
    outcome = blocked_for_good(Loss("default", frozenset({1, None}), "2 of 5"))
    assert outcome.code == 74
    assert outcome.message.startswith(
        "orcalike: blocked for good: the group waits for rank 1 and the witness, which have ended "
        "(2 of 5); the ranks were stopped."
    )
    one = blocked_for_good(Loss("default", frozenset({1}), ""))
    assert "blocked for good: the group waits for rank 1, which has ended; " in one.message
    known = blocked_for_good(Loss("default", frozenset(), "1 of 3"))
    assert "each member that the group misses has ended (1 of 3); " in known.message
    alone = blocked_for_good(Loss("jobs", frozenset(), ""))
    assert "all processes that were in the group 'jobs' have ended; " in alone.message


def test_no_room_says_what_to_raise() -> None:
    outcome = cannot_start(OSError(24, "Too many open files"), 99)
    assert outcome.code == 70
    assert "99 ranks: Too many open files; raise the limits (ulimit -n" in outcome.message


def test_reports() -> None:
    assert Report.parse(b"error\nTraceback\n  x\n") == Report("error", "Traceback\n  x\n")
    assert RankExit(0, 1, 1, 0.0, Report.parse(b"consequence\n")).consequence
    assert Report.parse(b"") is None
    assert Report.parse(b"garbage\n") is None
