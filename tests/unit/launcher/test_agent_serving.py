"""How an agent begins and ends: what it takes from its launcher first, and what is left of it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orcalike.launcher import agent as module
from orcalike.launcher import orphans
from orcalike.launcher.agent import Agent, serve
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.greeting import answer
from tests.lib.agent_launcher import (
    ASSIGNMENT,
    NONCE,
    QUIT,
    Launcher,
    report_of,
)


class Reaper:
    """In place of a `Reaper`."""

    pid, closed = 4711, False

    def __init__(self) -> None:
        self.steps: list[str] = []

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def reaper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reaper:
    made = Reaper()
    monkeypatch.setattr(module, "guarded_run_folder", lambda name: (tmp_path / name, made))
    monkeypatch.setattr(module, "own_key", lambda *values: b"k")
    monkeypatch.setattr(orphans, "adopt_orphans", lambda: made.steps.append("adopts orphans"))
    monkeypatch.setattr(signal, "alarm", lambda seconds: made.steps.append(f"ends in {seconds} s"))
    return made


def test_it_serves_a_launcher_and_then_all_is_over(
    launcher: Launcher, reaper: Reaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_X", "PRTE_X", "HYDI_X", "OTHER"):
        monkeypatch.setenv(name, "1")
    killed: list[Agent] = []
    monkeypatch.setattr(Agent, "kill_all", lambda agent: killed.append(agent))
    os.write(launcher._writes, ASSIGNMENT.encode(NONCE))
    launcher.send(QUIT)
    assert serve(launcher.reader, launcher.writer) == 0
    (launcher.agent,) = killed
    assert launcher.agent.assignment == ASSIGNMENT
    assert launcher.read_answer() == answer(NONCE)
    assert report_of(launcher.received()).trouble == ""
    assert reaper.closed
    assert reaper.steps == ["ends in 30 s", "ends in 0 s", "adopts orphans"]
    ours = {"PMI_RANK", "PMIX_RANK", "OMPI_X", "PRTE_X", "HYDI_X", "OTHER"} & set(os.environ)
    assert ours == {"OTHER"}


def test_it_kills_all_though_it_has_failed(
    launcher: Launcher, reaper: Reaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[Agent] = []

    def fail(agent: Agent) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(Agent, "run", fail)
    monkeypatch.setattr(Agent, "kill_all", lambda agent: killed.append(agent))
    os.write(launcher._writes, ASSIGNMENT.encode(NONCE))
    with pytest.raises(RuntimeError, match="a fault"):
        serve(launcher.reader, launcher.writer)
    (launcher.agent,) = killed
    assert reaper.closed


@pytest.mark.parametrize("what", ["key", "folder"])
def test_a_host_that_cannot_begin_says_why(
    launcher: Launcher, reaper: Reaper, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def fail(*_: object) -> Any:
        raise LaunchError(f"no {what}")

    monkeypatch.setattr(module, {"key": "own_key", "folder": "guarded_run_folder"}[what], fail)
    os.write(launcher._writes, ASSIGNMENT.encode(NONCE))
    assert serve(launcher.reader, launcher.writer) == 1
    assert launcher.read_answer() == answer(NONCE)
    assert report_of(launcher.received()).trouble == f"no {what}"


def test_a_greeting_that_is_none(launcher: Launcher, capsys: pytest.CaptureFixture[str]) -> None:
    os.write(launcher._writes, b"GET / HTTP/1.1\r\n")
    launcher.end()
    assert serve(launcher.reader, launcher.writer) == 2
    assert capsys.readouterr().err.startswith("orcalike agent: no launcher of this version")
    assert launcher.received() == []


@pytest.mark.parametrize(
    ("connection", "towards", "found"),
    [
        ("10.0.0.9 4000 10.0.0.1 22", (), ("10.0.0.9",)),
        ("10.0.0.9 4000 10.0.0.1 22", ("10.0.0.7", "10.0.0.8"), ("10.0.0.7", "10.0.0.8")),
        (None, (), ()),
    ],
)
def test_towards_which_host_it_finds_its_address(
    launcher: Launcher,
    monkeypatch: pytest.MonkeyPatch,
    connection: str | None,
    towards: tuple[str, ...],
    found: tuple[str, ...],
) -> None:
    asked: list[dict[str, object]] = []

    def own_host(**values: object) -> str:
        asked.append(values)
        return "127.0.0.1"

    monkeypatch.setattr(module, "own_host", own_host)
    if connection is None:
        monkeypatch.delenv("SSH_CONNECTION", raising=False)
    else:
        monkeypatch.setenv("SSH_CONNECTION", connection)
    launcher.make(towards=towards, advertise="h", interface="e")
    assert asked == [{"advertise": "h", "interface": "e", "towards": found}]


def test_what_it_prints_by_mistake_is_no_frame() -> None:
    """Nor does what it starts read what the launcher sends."""
    program = """
import os, sys
from orcalike.launcher import agent

def serve(reader, writer):
    print("a library says so", flush=True)
    os.write(writer, b"none:" + os.read(0, 100) + b" all:" + os.read(reader, 100))
    return 3

agent.serve = serve
agent.main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], input=b"said", capture_output=True, check=False
    )
    assert (ended.stdout, ended.stderr) == (b"none: all:said", b"a library says so\n")
    assert ended.returncode == 3


def test_lines_for_the_user_need_no_connection(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module._say("a rank has left something behind")
    assert capsys.readouterr().err == "a rank has left something behind\n"

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    module._say("nor this")
