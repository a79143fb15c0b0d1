"""Options that several tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--seed N` repeats one run of the simulator; `--rewrite` takes a script's output as it is."""
    parser.addoption("--seed", type=int, help="run the simulator with this seed alone")
    parser.addoption("--rewrite", action="store_true", help="rewrite what the scripts expect")


@pytest.fixture(autouse=True, scope="session")
def signals() -> Iterator[None]:
    """Programs that the tests start end by Ctrl-C and hang-up, also where the tests themselves do not.

    Under nohup, or in the background of a script, these are ignored, and that is inherited.
    """
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGHUP: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
