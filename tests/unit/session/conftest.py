"""What tests of sessions share: members that look into the order in memory only when they are woken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from orcalike.session import options
from tests.lib.fresh_members import Bench, OnLoop


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    """What a test leaves in the end; no member wakes others to compare states."""
    monkeypatch.setenv("ORCALIKE_CHECK", "none")
    monkeypatch.setattr(options, "FRESHNESS_MAX", 1e6)
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def bench(stack: ExitStack, tmp_path: Path) -> Bench:
    return Bench(stack, tmp_path)


@pytest.fixture
def on_loop(bench: Bench) -> Iterator[OnLoop]:
    member = OnLoop(bench)
    yield member
    member.leave()
