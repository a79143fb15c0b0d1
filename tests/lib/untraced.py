"""Tests that say nothing where lines are counted (`make coverage`)."""

from __future__ import annotations

import os

import pytest

untraced = pytest.mark.skipif(
    "COVERAGE_RUN" in os.environ,
    reason="where lines are counted, CPython specialises nothing, and more is imported",
)
