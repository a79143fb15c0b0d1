"""The folder of a job on one host: each process holds it, and none that is left behind stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orcalike.environments import folder

HOLD = """
import os, signal, sys
from orcalike.environments.folder import hold
path = hold(sys.argv[1])
(path / str(os.getpid())).touch()
print(path, flush=True)
if sys.stdin.readline() == "fork\\n":
    if os.fork() == 0:
        sys.exit()
    os.wait()
    print(path.exists(), flush=True)
    sys.stdin.readline()
"""


class Holder:
    """A process that holds the folder of a job."""

    def __init__(self, base: Path, job: str) -> None:
        environment = os.environ | {"XDG_RUNTIME_DIR": str(base)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", HOLD, job],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._process.stdout
        self.path = Path(self._process.stdout.readline().rstrip())

    def say(self, line: str) -> str:
        """Send a line, and get one."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line)
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def end(self, number: signal.Signals | None = None) -> None:
        """It ends by itself, or by a signal."""
        if number:
            self._process.send_signal(number)
        self._process.communicate()


@pytest.fixture
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where folders are; sockets need a short path."""
    return tmp_path_factory.mktemp("f")


def test_the_last_that_ends_removes_it(base: Path) -> None:
    first, second = Holder(base, "7.0"), Holder(base, "7.0")
    assert first.path == second.path
    first.end()
    assert second.path.is_dir()
    second.end()
    assert not second.path.exists()


def test_one_that_was_left_is_removed_by_the_next_job(base: Path) -> None:
    killed, living = Holder(base, "7.0"), Holder(base, "7.1")
    killed.end(signal.SIGKILL)
    assert killed.path.is_dir()
    other = base / "orcalike" / "0123abcd"  # of `orcalike run`
    other.mkdir()
    next_one = Holder(base, "7.2")
    assert not killed.path.exists()
    assert living.path.is_dir()
    assert other.is_dir()
    living.end()
    next_one.end()


def test_a_forked_child_does_not_remove_it(base: Path) -> None:
    holder = Holder(base, "7.0")
    assert holder.say("fork\n") == "True\n"
    holder.end()
    assert not holder.path.exists()


def test_it_is_private(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    path = folder.hold("7.0")
    assert path.stat().st_mode & 0o777 == 0o700
    folder._let_go(path, os.getpid())
    assert not path.exists()
