"""Options that several tests share."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--seed N` repeats one run of the simulator; `--rewrite` takes a script's output as it is."""
    parser.addoption("--seed", type=int, help="run the simulator with this seed alone")
    parser.addoption("--rewrite", action="store_true", help="rewrite what the scripts expect")
