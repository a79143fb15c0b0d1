"""What the users' tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lib.command import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command, for this test."""
    return Cli(tmp_path)
