"""What a test leaves behind is ended with that test, and never blamed on another one.

A test that fails in the middle leaves processes, sockets and files, which its traceback keeps. Each
would warn when it is collected at last, in the middle of a test that has nothing to do with it, and
warnings are errors here.
"""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import traceback
import warnings
import weakref
from collections.abc import Generator, Iterator
from typing import Any

import pytest

Processes = weakref.WeakSet[subprocess.Popen[Any]]


@pytest.fixture(autouse=True, scope="session")
def started_processes() -> Iterator[Processes]:
    """All processes that these tests have started by `subprocess`."""
    started: Processes = weakref.WeakSet()
    start = subprocess.Popen.__init__

    def noted(self: subprocess.Popen[Any], *arguments: Any, **options: Any) -> None:
        start(self, *arguments, **options)
        started.add(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", noted)
        yield started


@pytest.fixture(autouse=True)
def no_process_left(started_processes: Processes) -> Iterator[None]:
    """A process that outlives its test is killed, and fails that test."""
    of_others = list(started_processes)
    yield
    of_this = [process for process in started_processes if process not in of_others]
    left = [process.args for process in of_this if end(process)]
    assert not left, f"the test left processes behind: {left}"


def end(process: subprocess.Popen[Any]) -> bool:
    """Kill a process and close its pipes; returns whether it still ran."""
    ran = process.poll() is None
    if ran:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    return ran


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """After a failure, what its frames hold is closed here."""
    try:
        return (yield)
    finally:
        failure: BaseException | None = getattr(sys, "last_value", None)
        if failure is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                clear(failure)
                gc.collect()


def clear(failure: BaseException) -> None:
    """Empty the frames of an error, and of those before it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [failure]
    while waiting:
        error = waiting.pop()
        if error is not None and id(error) not in seen:
            seen.add(id(error))
            traceback.clear_frames(error.__traceback__)
            for frame, _ in traceback.walk_tb(error.__traceback__):
                assert frame.f_locals is not None  # a copy, which is made anew
            waiting += [error.__cause__, error.__context__]
