"""What the launcher says first to the command that reaches an agent, however late that reads it."""

from __future__ import annotations

import fcntl
import os
import selectors
from pathlib import Path
from typing import Any, cast

import pytest

from orcalike.launcher.greeting import Assignment
from orcalike.launcher.reaper import Reaper
from orcalike.launcher.remote_host import RemoteHost
from orcalike.launcher.run_plan import RunPlan
from orcalike.launcher.timers import Timers

#: More than a pipe has room for, unless it is made larger.
LENGTH = 300_000
#: A command that reads so much when it may, and then ends.
READS_LATE = 'read go < "$0"; head -c "$2" > "$1"; exit 5'


class Noted:
    """A `HostObserver` that keeps how the command has ended."""

    def __init__(self) -> None:
        self.failures: list[tuple[int, str]] = []

    def failed(self, host: RemoteHost, returncode: int, said: str) -> None:
        """Keep it."""
        self.failures.append((returncode, said))

    def slow(self, host: RemoteHost) -> None:
        """It may be."""


class NoReaper:
    """In place of a `Reaper`."""

    def watch(self, group: int) -> None:
        """Nothing."""

    def forget(self, group: int) -> None:
        """Nothing."""


def refused(*arguments: Any) -> int:
    """As of a user that has as many large pipes as one may have (`pipe-user-pages-soft`)."""
    raise PermissionError(1, "Operation not permitted")


def take(selector: selectors.BaseSelector, timeout: float | None) -> None:
    """One turn of a launcher's loop."""
    registered = selector.get_map()
    for key, _ in selector.select(timeout):
        if registered.get(key.fd) is key:
            key.data()


def host_of(
    command: list[str], length: int, selector: selectors.BaseSelector
) -> tuple[RemoteHost, Noted]:
    plan = RunPlan(identity="j", seed=1, program="prog.py", arguments=("x" * length,))
    assignment = Assignment(
        version="1", plan=plan, name="a", node=1, slots=1, key=b"", drawn_from="", lease=10.0
    )
    noted = Noted()
    host = RemoteHost(
        "a",
        command,
        assignment,
        cast(Any, noted),
        selector=selector,
        timers=Timers(),
        reaper=cast(Reaper, NoReaper()),
    )
    return host, noted


def test_a_long_assignment_is_written_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "fcntl", refused)
    go, seen = tmp_path / "go", tmp_path / "seen"
    os.mkfifo(go)
    command = ["sh", "-c", READS_LATE, str(go), str(seen), str(LENGTH)]
    with selectors.DefaultSelector() as selector:
        host, noted = host_of(command, LENGTH, selector)
        host.connect()
        for _ in range(10):  # it reads nothing yet: no turn waits for it
            take(selector, 0.0)
        go.write_text("go\n")
        while not noted.failures:
            take(selector, None)
        assert [returncode for returncode, _ in noted.failures] == [5]
    text = seen.read_bytes()
    assert len(text) == LENGTH
    assert text.endswith(b"x" * 1000)


def test_a_command_that_reads_nothing_and_ends() -> None:
    with selectors.DefaultSelector() as selector:
        host, noted = host_of(["sh", "-c", "echo no such host >&2; exit 3"], LENGTH, selector)
        host.connect()
        while not noted.failures:
            take(selector, None)
        assert noted.failures == [(3, "no such host")]
        assert not host.connected
        assert not selector.get_map()
