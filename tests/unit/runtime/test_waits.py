"""The table of what each thread waits for, and what is shown of it."""

from __future__ import annotations

import contextlib
import re
import threading
import time

import pytest

from orcalike.launcher import stack_dump
from orcalike.objects import Queue
from orcalike.runtime import waits
from orcalike.testing import Members


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


def test_a_call_waits_for_its_reply_and_then_for_its_guard() -> None:
    with contextlib.closing(Members(1)) as members:
        jobs = members[0].share(Queue[int], "jobs")
        thread = threading.Thread(target=jobs.get, name="worker")
        thread.start()
        while not any("guard Queue._get on 'jobs'" in line for line in waits.report()):
            assert thread.is_alive()
            time.sleep(0.001)
        jobs.put(1)
        thread.join()


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
