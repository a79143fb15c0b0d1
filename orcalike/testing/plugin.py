"""The pytest plugin: groups for tests of programs that use orcalike.

It is installed with orcalike, and pytest finds it by itself. `orcalike_group(3)` gives members in
this process, `orcalike_processes(3)` real ones. A test that uses either never hangs: when it goes
on for longer than `orcalike_timeout` (an option of pytest's configuration, or a mark of the test)
after its last group was made, it fails, and shows all stacks and the waiting calls with what they wait for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from orcalike.testing.limits import TimeLimit
    from orcalike.testing.members import Members
    from orcalike.testing.processes import Processes

TIMEOUT = "30s"
"""How long a test that uses these fixtures may take, if nothing else is said."""
MADE_WITHIN = 60.0
"""Seconds that a group has at the least until it is made: a test's limit is for what comes then."""
CLOSED_WITHIN = 10.0
"""Seconds that groups have at the least until they are left: each member waits up to 5 s for its answer."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The time limit of tests that use groups."""
    text = (
        f'how long a test that uses orcalike\'s fixtures may take, as "500ms" (default: {TIMEOUT})'
    )
    parser.addini("orcalike_timeout", text, default=TIMEOUT)


def pytest_configure(config: pytest.Config) -> None:
    """The mark of one test's time limit."""
    text = "orcalike_timeout(duration): how long this test may take, as 10.0 or '500ms'"
    config.addinivalue_line("markers", text)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """The test itself is what has a limit, not what pytest does before and after it."""
    limit: TimeLimit | None = pyfuncitem.funcargs.get("_orcalike_limit")  # type: ignore[assignment]
    if limit is None:
        return (yield)
    with limit:
        return (yield)


@pytest.fixture
def _orcalike_limit(request: pytest.FixtureRequest) -> TimeLimit:
    """What ends the test, and the end of its groups, when the time is over."""
    from orcalike.runtime.durations import seconds_of  # not at the top: most tests need none of it
    from orcalike.testing.limits import TimeLimit

    mark = request.node.get_closest_marker("orcalike_timeout")
    duration = mark.args[0] if mark is not None else request.config.getini("orcalike_timeout")
    seconds = seconds_of(duration)
    assert seconds is not None, "orcalike_timeout takes a duration"
    return TimeLimit(seconds, _fail, request.node.name)


def _fail(text: str) -> NoReturn:
    pytest.fail(text)


@pytest.fixture
def orcalike_group(_orcalike_limit: TimeLimit) -> Iterator[Callable[[int], Members]]:
    """`orcalike_group(3)`: three members of a new group in this process, by rank."""
    from orcalike.testing.members import Members  # not at the top: most tests need none of it

    opened = contextlib.ExitStack()

    def make(count: int) -> Members:
        _orcalike_limit.restart(MADE_WITHIN)
        members = Members(count, MADE_WITHIN)
        opened.callback(members.close)
        _orcalike_limit.restart()
        return members

    yield make
    with _orcalike_limit.of_at_least(CLOSED_WITHIN):
        opened.close()


@pytest.fixture
def orcalike_processes(_orcalike_limit: TimeLimit) -> Iterator[Callable[[int], Processes]]:
    """`orcalike_processes(3)`: a new group of three processes, whose functions the test calls."""
    from orcalike.testing.processes import Processes  # not at the top: most tests need none of it

    opened = contextlib.ExitStack()

    def make(count: int) -> Processes:
        _orcalike_limit.restart(MADE_WITHIN)
        processes = Processes(count, MADE_WITHIN)
        opened.callback(processes.close)
        _orcalike_limit.reporters.append(processes.report)
        _orcalike_limit.restart()
        return processes

    yield make
    with _orcalike_limit.of_at_least(CLOSED_WITHIN):
        opened.close()
