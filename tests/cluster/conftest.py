"""What the tests with real processes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.programs import Programs


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    """The programs, for this test."""
    programs = Programs(tmp_path)
    yield programs
    programs.kill_all()
