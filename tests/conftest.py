"""Options that several tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence

import pytest

from tests.leftovers import no_process_left, pytest_runtest_teardown, started_processes

__all__ = ["no_process_left", "pytest_runtest_teardown", "started_processes"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--seed N` repeats one run of the simulator; `--rewrite` takes a script's output as it is."""
    parser.addoption("--seed", type=int, help="run the simulator with this seed alone")
    parser.addoption("--rewrite", action="store_true", help="rewrite what the scripts expect")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share what a fixture makes once run in one process, where they run in several."""
    for item in items:
        made: dict[str, Sequence[pytest.FixtureDef[object]]]
        made = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009 it has no public name
        if any(definitions[-1].scope == "module" for definitions in made.values()):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


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
