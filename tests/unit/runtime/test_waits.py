"""The table of what each thread waits for, and what is shown of it."""

from __future__ import annotations

import re
import threading

import pytest

from orcalike.launcher import stack_dump
from orcalike.runtime import waits


def test_report_names_thread_object_and_operation() -> None:
    entered, done = threading.Event(), threading.Event()

    def wait() -> None:
        waits.enter("guard", "jobs", "JobQueue.get")
        entered.set()
        done.wait()
        waits.leave()

    thread = threading.Thread(target=wait, name="worker")
    thread.start()
    entered.wait()
    try:
        (line,) = waits.report()
    finally:
        done.set()
        thread.join()
    assert re.fullmatch(
        r"thread worker \(0x[0-9a-f]{16}\) waits \d+\.\d s: guard JobQueue\.get on 'jobs'", line
    )
    assert waits.report() == []


def test_report_without_object_or_operation() -> None:
    wait = waits.Wait("barrier", "", "", 0)
    assert wait.describe(12_340_000_000) == "12.3 s: barrier"


def test_leaving_without_a_wait_does_nothing() -> None:
    waits.leave()
    assert waits.waiting == {}


def test_waits_are_written_to_stderr(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCALIKE_RANK", "3")
    waits.enter("view", "", "join")
    try:
        stack_dump.write_waits()
    finally:
        waits.leave()
    error = capfd.readouterr().err
    assert re.match(
        r"rank 3 \(pid \d+\):\n  thread MainThread \(0x\w+\) waits .* view join\n", error
    )
