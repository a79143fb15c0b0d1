"""What all tests share: options, markers by folder, and what is cleaned up."""

from __future__ import annotations

import gc
import resource
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.lib import orders
from tests.lib.leftovers import no_process_left, pytest_runtest_teardown, started_processes

# How fast a machine is decides nothing, however busy it is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

TESTS = Path(__file__).parent
ROOT = TESTS.parent
MANY_FILES = 5120
"""So many are enough for 65 members in one process, of which each can wake each other one."""

__all__ = ["no_process_left", "pytest_runtest_teardown", "started_processes"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--seed N` repeats one run of the simulator; `--rewrite` takes a script's output as it is."""
    parser.addoption("--seed", type=int, help="run the simulator with this seed alone")
    parser.addoption("--rewrite", action="store_true", help="rewrite what the scripts expect")


def pytest_collection() -> None:
    """What is made while tests are collected stays, so that there is no garbage to look for."""
    gc.disable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The folder of a test is its marker: `pytest -m cluster`.

    If tests run in several processes, those of all folders are mixed: some compute, and some wait.
    """
    for item in items:
        if folder := folder_of(item.path):
            item.add_marker(folder)
    if hasattr(config, "workerinput"):
        many = Counter(folder_of(item.path) for item in items)
        seen = Counter[str]()
        places = {}
        for item in items:
            folder = folder_of(item.path)
            places[item] = seen[folder] / many[folder]
            seen[folder] += 1
        items.sort(key=places.__getitem__)


@cache
def folder_of(path: Path) -> str:
    """The folder of `tests` that a file is in; "" outside."""
    return path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else ""


def pytest_collection_finish() -> None:
    """Nor need a test that collects garbage go through it."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """If tests run in several processes: one by one, but for those that share what is made once."""
    from xdist.scheduler import LoadScopeScheduling

    class OneByOne(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if makes_once(file) else nodeid

    return OneByOne(config, log)


@cache
def makes_once(file: str) -> bool:
    """Whether tests of a module share a fixture."""
    return 'scope="module"' in (ROOT / file).read_text()


@pytest.fixture(params=orders.ORDERS)
def order(request: pytest.FixtureRequest) -> Iterator[str]:
    """The layer that orders: in groups for which the test names no stack, and where it asks for it."""
    layer: str = request.param
    with orders.over(layer):
        yield layer


@pytest.fixture(autouse=True, scope="session")
def signals() -> Iterator[None]:
    """Programs that the tests start end by Ctrl-C and hang-up, also if the tests themselves do not.

    Under nohup, or in the background of a script, these are ignored, and that is inherited.
    """
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGHUP: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def many_files() -> Iterator[None]:
    """The test may have more files open than is usual; none of them stays open."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[1] < MANY_FILES:
        pytest.skip(f"the hard limit of open files is {limits[1]}, not {MANY_FILES}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], MANY_FILES), limits[1]))
    yield
    gc.collect()
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.fixture(autouse=True, scope="session")
def own_runs_of_all() -> Iterator[None]:
    """Runs that tests start are not in the folder that all of this user's runs are looked for in.

    A test that looks for runs has a folder of its own, and finds none of those beside it.
    """
    with (
        tempfile.TemporaryDirectory(prefix="o", dir="/tmp") as folder,  # sockets need a short path
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("XDG_RUNTIME_DIR", folder)
        yield
