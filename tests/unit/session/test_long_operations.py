"""The watch over long operations: what was reported is tried again, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

import orcalike as orca
from orcalike.session import long_operations
from orcalike.session.long_operations import AGAIN, LongOperations

LONG = round(1e9 * AGAIN)
"""How long what was reported has run at least when it is tried again, in ns."""


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
        (LONG - 1, True, 0, False),  # it has, and this is another one
        (LONG, False, 1, True),
        (LONG, True, 1, False),
    ],
)
def test_what_is_tried_again(
    watch: LongOperations,
    monkeypatch: pytest.MonkeyPatch,
    took: int | None,
    can: bool,
    tried: int,
    holds_up: bool,
) -> None:
    found = None if took is None else ("object", SimpleNamespace(title="Class.operation"), took)
    attempts = []

    def relieve() -> bool:
        attempts.append(1)
        return can

    monkeypatch.setattr(long_operations, "running", lambda runtime: found)
    monkeypatch.setattr(watch, "_relieve", relieve)
    assert watch._try_again() is holds_up
    assert len(attempts) == tried
