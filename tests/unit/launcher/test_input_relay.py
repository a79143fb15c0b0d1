"""Input for a rank 0 on another host: from a pipe or a file, in the background, and for one process after another."""

from __future__ import annotations

import errno
import math
import os
import selectors
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from orcalike.launcher import input_relay
from orcalike.launcher.frames import WINDOW
from orcalike.launcher.input_relay import READ_SIZE, InputRelay
from orcalike.launcher.timers import Timers


class Child:
    """It takes what it is given."""

    ended = False

    def __init__(self) -> None:
        self.given: list[bytes] = []
        self.on_input_taken: Callable[[int], None] = lambda count: None

    def give_input(self, data: bytes) -> None:
        self.given.append(data)

    @property
    def size(self) -> int:
        return sum(map(len, self.given))


class Launcher:
    """A relay in a launcher's loop, for standard input that is something else."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, selector: selectors.BaseSelector) -> None:
        self.selector, self.timers = selector, Timers()
        self.relay = InputRelay(selector, self.timers)
        self.is_foreground = True
        self._patch = monkeypatch
        monkeypatch.setattr(input_relay, "may_read_stdin", lambda: self.is_foreground)

    def attend(self, child: Child, descriptor: int) -> None:
        self._patch.setattr(input_relay, "reopen", lambda standard, access: descriptor)
        self.relay.attend(cast(Any, child))

    def run(self) -> None:
        """Until nothing more is to be done at once."""
        idle = False
        while not idle:
            events = self.selector.select(0)
            for key, _ in events:
                key.data()
            due = self.timers.next()
            idle = not events and (due is None or due > time.monotonic())
            self.timers.expire(time.monotonic())

    @property
    def is_idle(self) -> bool:
        """Whether nothing wakes it."""
        return not self.selector.get_map() and self.timers.next() is None


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Iterator[Launcher]:
    with selectors.DefaultSelector() as selector:
        yield Launcher(monkeypatch, selector)


class Source:
    """What is read, `descriptor`: a file, or a pipe that is filled as it is emptied."""

    def __init__(self, text: bytes, file: Path | None = None) -> None:
        self._rest, self._writer = memoryview(text), -1
        if file is not None:
            file.write_bytes(text)
            self._rest = self._rest[len(text) :]
            self.descriptor = os.open(file, os.O_RDONLY)
        else:
            self.descriptor, self._writer = os.pipe()
            os.set_blocking(self.descriptor, False)
            os.set_blocking(self._writer, False)

    def fill(self) -> bool:
        """Write what there is room for; False if nothing was."""
        if self._writer < 0:
            return False
        try:
            self._rest = self._rest[os.write(self._writer, self._rest) :]
        except BlockingIOError:
            return False
        if not self._rest:
            self.end()
        return True

    def write(self, data: bytes) -> None:
        os.write(self._writer, data)

    def end(self) -> None:
        if self._writer >= 0:
            os.close(self._writer)
        self._writer = -1

    def close(self) -> None:
        self.end()
        os.close(self.descriptor)


@pytest.fixture
def pipe() -> Iterator[Source]:
    source = Source(b"")
    yield source
    source.close()


def test_input_that_another_process_has_taken_does_not_block(
    launcher: Launcher, pipe: Source
) -> None:
    """The event that says that there is some may come to several processes."""
    child = Child()
    launcher.attend(child, pipe.descriptor)
    pipe.write(b"taken\n")
    ((key, _),) = launcher.selector.select(0)
    assert os.read(pipe.descriptor, 100) == b"taken\n"
    key.data()
    assert child.given == []
    pipe.write(b"left\n")
    launcher.run()
    pipe.end()
    launcher.run()
    assert child.given == [b"left\n", b""]
    assert launcher.is_idle


@pytest.mark.parametrize("is_file", [True, False])
def test_it_reads_ahead_by_no_more_than_a_window(
    launcher: Launcher, tmp_path: Path, is_file: bool
) -> None:
    text = os.urandom(READ_SIZE) * (3 * WINDOW // READ_SIZE)
    source = Source(text, tmp_path / "input" if is_file else None)
    child = Child()

    def given() -> int:
        launcher.run()
        while source.fill():
            launcher.run()
        return child.size

    launcher.attend(child, source.descriptor)
    assert given() == WINDOW
    child.on_input_taken(READ_SIZE - 1)  # one read might be more
    assert given() == WINDOW
    assert launcher.is_idle
    child.on_input_taken(1)
    assert given() == WINDOW + READ_SIZE
    child.on_input_taken(2 * WINDOW)  # more than it was given
    assert given() == 2 * WINDOW + READ_SIZE
    child.on_input_taken(WINDOW)
    assert given() == len(text)
    assert b"".join(child.given) == text
    assert child.given.count(b"") == 1
    assert launcher.is_idle
    source.close()


def test_a_rank_that_is_started_again_has_what_the_one_before_was_not_given(
    launcher: Launcher, pipe: Source
) -> None:
    first, second, third = Child(), Child(), Child()
    launcher.attend(first, pipe.descriptor)
    pipe.write(b"one\n")
    launcher.run()
    first.ended = True
    pipe.write(b"two\n")
    launcher.run()
    assert launcher.is_idle
    launcher.attend(second, pipe.descriptor)
    launcher.run()
    first.on_input_taken(100)  # this comes late: it is no credit of the other one
    assert (first.given, second.given) == ([b"one\n"], [b"two\n"])
    pipe.end()
    launcher.run()
    assert second.given == [b"two\n", b""]
    launcher.attend(third, pipe.descriptor)
    assert third.given == [b""]
    assert launcher.is_idle


def test_what_a_process_took_that_has_ended_is_no_credit_of_the_next_one(
    launcher: Launcher, tmp_path: Path
) -> None:
    source = Source(bytes(3 * WINDOW), tmp_path / "input")
    first, second = Child(), Child()
    launcher.attend(first, source.descriptor)
    launcher.attend(second, source.descriptor)
    launcher.run()
    first.on_input_taken(WINDOW)
    launcher.run()
    assert (first.size, second.size) == (0, WINDOW)
    source.close()


@pytest.mark.parametrize("is_file", [True, False])
def test_a_background_job_takes_nothing_until_it_has_the_terminal(
    launcher: Launcher, tmp_path: Path, is_file: bool
) -> None:
    source = Source(b"typed\n", tmp_path / "input" if is_file else None)
    source.fill()
    child = Child()
    launcher.is_foreground = False
    launcher.attend(child, source.descriptor)
    launcher.run()
    assert child.given == []
    assert not launcher.selector.get_map()  # it would be called again and again
    launcher.timers.expire(math.inf)
    assert child.given == []
    launcher.is_foreground = True
    launcher.timers.expire(math.inf)  # it looks again
    launcher.run()
    assert child.given == [b"typed\n", b""]
    assert launcher.is_idle
    source.close()


def test_a_job_that_is_put_into_the_background_takes_nothing_more(
    launcher: Launcher, pipe: Source
) -> None:
    child = Child()
    launcher.attend(child, pipe.descriptor)
    launcher.run()
    launcher.is_foreground = False
    pipe.write(b"for the shell\n")
    launcher.run()
    assert child.given == []
    assert not launcher.selector.get_map()
    launcher.is_foreground = True
    launcher.timers.expire(math.inf)
    launcher.run()
    assert child.given == [b"for the shell\n"]


def test_a_terminal_that_has_gone_is_the_end_of_input(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch, pipe: Source
) -> None:
    def gone(descriptor: int, size: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    child = Child()
    launcher.attend(child, pipe.descriptor)
    pipe.write(b"x")
    with monkeypatch.context() as patch:
        patch.setattr(os, "read", gone)
        launcher.run()
    assert child.given == [b""]
    assert launcher.is_idle


def test_it_reads_standard_input_which_others_may_read_too(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch, pipe: Source
) -> None:
    """By a descriptor of its own, made once: that of others keeps its properties."""
    made: list[tuple[int, int]] = []

    def noted(descriptor: int, access: int) -> int:
        made.append((descriptor, access))
        return pipe.descriptor

    monkeypatch.setattr(input_relay, "reopen", noted)
    for _ in range(2):
        launcher.relay.attend(cast(Any, Child()))
    assert made == [(0, os.O_RDONLY)]
