"""Processes that a rank has started, and that are members: the end of each is seen, and no other's is taken for it."""

from __future__ import annotations

import os
import resource
import selectors
import subprocess
from collections.abc import Iterator

import pytest

from orcalike.launcher.started_members import INCARNATIONS_MAX, SPARE, StartedMembers
from tests.lib.descriptors import count_files


@pytest.fixture
def selector() -> Iterator[selectors.BaseSelector]:
    """The launcher's loop."""
    with selectors.DefaultSelector() as selector:
        yield selector


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """One that a rank has started."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def nothing_ends(incarnation: int) -> None:
    pytest.fail(f"member {incarnation} is said to have ended")


def take_next(selector: selectors.BaseSelector) -> None:
    for key, _ in selector.select():
        key.data()


def test_the_end_of_a_process_is_that_of_all_members_that_it_was(
    selector: selectors.BaseSelector, process: subprocess.Popen[bytes]
) -> None:
    ended: list[int] = []
    started = StartedMembers(selector, ended.append)
    for line in ("member 7", "member 8", "member 7"):
        started.take(process.pid, line)
    assert not selector.select(0)
    process.kill()
    take_next(selector)
    assert ended == [7, 8]
    assert not selector.get_map()


def test_one_that_has_ended_when_its_line_is_read(
    selector: selectors.BaseSelector, process: subprocess.Popen[bytes]
) -> None:
    """It was waited for already; or its end is seen later in the same turn."""
    ended: list[int] = []
    started = StartedMembers(selector, ended.append)
    started.take(process.pid, "member 7")
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    started.take(process.pid, "member 8")
    assert ended == [7]
    take_next(selector)
    assert ended == [7, 8]
    process.wait()
    started.take(process.pid, "member 9")
    assert ended == [7, 8, 9]
    assert not selector.get_map()


@pytest.mark.parametrize("line", ["", "member", "member x", "joining default 7", "left default"])
def test_any_other_line_is_let_pass(
    selector: selectors.BaseSelector, process: subprocess.Popen[bytes], line: str
) -> None:
    StartedMembers(selector, nothing_ends).take(process.pid, line)
    assert not selector.get_map()


def test_of_many_members_the_last_count(
    selector: selectors.BaseSelector, process: subprocess.Popen[bytes]
) -> None:
    ended: list[int] = []
    started = StartedMembers(selector, ended.append)
    for incarnation in range(INCARNATIONS_MAX + 3):
        started.take(process.pid, f"member {incarnation}")
    process.kill()
    take_next(selector)
    assert ended == [*range(3, INCARNATIONS_MAX + 3)]


def test_descriptors_are_left_for_the_ranks(
    selector: selectors.BaseSelector,
    process: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without room for one the end of the process is not seen; nothing else comes of it."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (SPARE, SPARE))
    before = count_files()
    StartedMembers(selector, nothing_ends).take(process.pid, "member 7")
    assert not selector.get_map()
    assert count_files() == before
