"""The watch over long operations: what is tried again, and what it remembers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

import orcalike as orca
from orcalike.runtime.replica import Replica
from orcalike.session.long_operations import AGAIN, LONG, QUIET, LongOperations, Run, Sight
from orcalike.session.thread_account import ThreadAccount


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[LongOperations]:
    """Of a group of one; what it finds and what it can relieve is the test's."""
    with orca.join() as group:
        watch = LongOperations(group._runtime, group._session.pump)
        try:
            yield watch
        finally:
            monkeypatch.undo()
            watch.close()


@pytest.mark.parametrize(
    ("took", "can", "tried", "holds_up"),
    [
        (None, True, 0, False),  # it has ended
        (AGAIN - 0.001, True, 0, False),  # it has, and this is another one
        (AGAIN, False, 1, True),
        (AGAIN, True, 1, False),
    ],
)
def test_what_is_tried_again(
    watch: LongOperations,
    monkeypatch: pytest.MonkeyPatch,
    took: float | None,
    can: bool,
    tried: int,
    holds_up: bool,
) -> None:
    replica = SimpleNamespace(name="object", number=1)
    run = Run(cast("Replica", replica), SimpleNamespace(title="Class.operation"), None, "mark")
    found = None if took is None else (run, took)
    attempts = []

    def relieve() -> bool:
        attempts.append(1)
        return can

    monkeypatch.setattr(watch, "_receiving", lambda: found)
    monkeypatch.setattr(watch, "_relieve", relieve)
    assert watch._try_again() is holds_up
    assert len(attempts) == tried


@pytest.mark.parametrize(
    ("can", "says"),
    [
        (True, "what is for its object waits until it has"),
        (False, "this member receives nothing meanwhile"),
    ],
)
def test_a_member_that_is_held_up_is_tried_again_until_another_thread_receives(
    watch: LongOperations,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    can: bool,
    says: str,
) -> None:
    replica = SimpleNamespace(name="object", number=1)
    run = Run(cast("Replica", replica), SimpleNamespace(title="Class.operation"), None, "mark")
    monkeypatch.setattr(watch, "_relieve", lambda: can)
    monkeypatch.setattr(watch, "_long_receiving", lambda: (run, 0.6))
    noted: list[Run] = []
    monkeypatch.setattr(watch, "_note", noted.append)
    assert watch._report() is (not can)
    assert noted == [run]  # it is not named a second time
    (record,) = caplog.records
    assert record.getMessage() == (
        "Class.operation of 'object' has run for 0.6 s where messages are received, and has not ended: "
        + says
    )
    monkeypatch.setattr(watch, "_long_receiving", lambda: None)
    assert watch._report() is False


def test_what_was_named_long_ago_is_forgotten(watch: LongOperations) -> None:
    """But for what still runs, which is named once."""
    watch._seen = {(1, "runs"): Sight("mark", 0.0, ThreadAccount(None))}
    watch._named = {
        (1, "runs"): ("mark", -QUIET),
        (1, "ended"): ("mark", -QUIET),
        (2, "lately"): ("mark", time.monotonic()),
    }
    watch._add_named((3, "now"), "mark")
    assert set(watch._named) == {(1, "runs"), (2, "lately"), (3, "now")}


def test_an_operation_without_a_processor_is_not_named(
    watch: LongOperations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named as soon as it has had one for long, and not at all if it ends."""
    replica = SimpleNamespace(name="object", number=1)
    run = Run(cast("Replica", replica), SimpleNamespace(title="Class.operation"), None, "mark")
    has_run = iter([False, False, True])
    monkeypatch.setattr(watch, "_receiving", lambda: (run, LONG))
    monkeypatch.setattr(ThreadAccount, "has_run", lambda self: next(has_run))
    assert watch._long_receiving() == (run, LONG)
    assert list(has_run) == []

    found = iter([(run, LONG), (run, LONG), None])
    monkeypatch.setattr(watch, "_receiving", lambda: next(found))
    monkeypatch.setattr(ThreadAccount, "has_run", lambda self: False)
    assert watch._long_receiving() is None
