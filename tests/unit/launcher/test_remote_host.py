"""What the launcher says first to the command that reaches an agent, however late that reads it."""

from __future__ import annotations

import errno
import fcntl
import os
import selectors
from pathlib import Path
from typing import Any, cast

import pytest

from orcalike.launcher.errors import LaunchError
from orcalike.launcher.greeting import Assignment
from orcalike.launcher.host_checks import cannot_start
from orcalike.launcher.host_list import ListedHost
from orcalike.launcher.hosts import Hosts
from orcalike.launcher.local_host import LocalHost
from orcalike.launcher.reaper import Reaper
from orcalike.launcher.remote_host import RemoteHost
from orcalike.launcher.run_keys import RunKey
from orcalike.launcher.run_plan import RunPlan
from orcalike.launcher.timers import Timers
from tests.lib.descriptors import count_files

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

    pid = 4711

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


def test_a_command_that_cannot_be_watched_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of it, so that the run can end."""
    with selectors.DefaultSelector() as selector:
        files = count_files()
        host, noted = host_of(["sleep", "1000"], 1, selector)
        started = []

        def pidfd_open(pid: int) -> int:
            started.append(pid)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

        monkeypatch.setattr(os, "pidfd_open", pidfd_open)
        with pytest.raises(OSError, match="Too many open files"):
            host.connect()
        assert not host.connected
        assert not selector.get_map()
        assert count_files() == files
        with pytest.raises(ChildProcessError):
            os.waitpid(started[0], 0)
        assert noted.failures == []


def test_what_cannot_be_started_says_what_to_do() -> None:
    there_is_none, no_room = (OSError(number, os.strerror(number)) for number in (2, 24))
    assert "install it" in cannot_start("ssh", there_is_none)
    assert "ssh: Too many open files; raise the limits" in cannot_start("ssh", no_room)


def test_commands_that_have_ended_are_spared_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their numbers may come to mean what a rank has left behind."""
    monkeypatch.setenv("ORCALIKE_SSH", "false")
    with selectors.DefaultSelector() as selector:
        plan = RunPlan(identity="j", seed=1, program="prog.py", nprocs=1)
        local = LocalHost("here", plan, tmp_path, cast(Reaper, NoReaper()), selector)
        listed = [ListedHost("a", 1)]
        hosts = Hosts(
            plan,
            listed,
            local,
            RunKey(b""),
            via="ssh",
            interface="",
            remote_python="",
            selector=selector,
            timers=Timers(),
            reaper=cast(Reaper, NoReaper()),
            notice=lambda text: None,
        )
        failures = list[LaunchError]()
        hosts.on_failed = failures.append
        hosts.connect()
        assert len(local.commands()) == 1
        while not failures:
            take(selector, None)
        assert local.commands() == set()
        assert local.spared == {NoReaper.pid}
