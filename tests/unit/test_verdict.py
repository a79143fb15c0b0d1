"""Exit codes and last words of a run (USERS.md 2.6)."""

from __future__ import annotations

from orcalike.launch.verdict import Ending, Report, cannot_start, exit_code, failure, witness_lost


def test_exit_codes_are_a_shells() -> None:
    assert exit_code(7) == 7
    assert exit_code(-11) == 139


def test_words_for_a_failure() -> None:
    outcome = failure(Ending(2, 4711, 1, 0.417), others_stopped=3)
    assert outcome.code == 1
    assert outcome.message == (
        "orcalike: rank 2 (pid 4711) failed first with exit code 1 after 0.42 s; 3 others stopped"
    )


def test_words_for_a_signal() -> None:
    outcome = failure(Ending(0, 9, -11, 1.0), others_stopped=0)
    assert outcome.code == 139
    assert outcome.message == (
        "orcalike: rank 0 (pid 9) was killed first by SIGSEGV (exit code 139) after 1.00 s"
    )


def test_usage_error_found_by_a_rank() -> None:
    outcome = failure(Ending(0, 9, 2, 1.0, Report("usage", "no module named 'x'")), 3)
    assert (outcome.code, outcome.message) == (2, "orcalike: no module named 'x'")


def test_witness_that_ends_too_early() -> None:
    outcome = witness_lost(5, -9)
    assert outcome.code == 70
    assert "witness (pid 5)" in outcome.message
    assert "SIGKILL" in outcome.message


def test_no_room_says_what_to_raise() -> None:
    outcome = cannot_start(OSError(24, "Too many open files"), 99)
    assert outcome.code == 70
    assert "99 ranks: Too many open files; raise the limits (ulimit -n" in outcome.message


def test_reports() -> None:
    assert Report.parse(b"error\nTraceback\n  x\n") == Report("error", "Traceback\n  x\n")
    assert Ending(0, 1, 1, 0.0, Report.parse(b"consequence\n")).consequence
    assert Report.parse(b"") is None
    assert Report.parse(b"garbage\n") is None
