"""A group whose members compare digests of states."""

from __future__ import annotations

import pytest

from tests.protocol.digest_stage import (
    make,
)
from tests.protocol.test_runtime_sim import Stage


@pytest.fixture(params=["some", "all"])
def stage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Three members."""
    return make(monkeypatch, request.param, 3)
