"""`orcalike status` as a user meets it: what runs here, and how its groups stand."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from tests.lib.processes import until

if TYPE_CHECKING:
    from tests.lib.command import Cli

#: Each rank writes 10 times, rank 0 waits for a guard; then they stay until a line comes to rank 0.
PROGRAM = """
import threading
import orcalike as orca
from orcalike.objects import Counter, Event

@orca.shared
class Gate:
    def __init__(self): self.open = False
    @orca.write
    def enter(self): pass
    @enter.when
    def _may_enter(self): return self.open

with orca.join() as group:
    counter, done, gate = group.share(Counter, "n"), group.share(Event, "done"), group.share(Gate, "gate")
    for _ in range(10):
        counter.add(1)
    if rank == 0:
        waits = gate.enter.nowait()
    group.barrier()
    print("ready", flush=True)
    if rank == 0:
        sys.stdin.readline()
        waits.cancel()
        done.set()
    else:
        done.wait()
"""


@pytest.fixture(autouse=True)
def own_runs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the runs of this test are there to be found."""
    directory = tmp_path_factory.mktemp("x")
    directory.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))


def status(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "orcalike", "status", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)


def runs() -> list[dict[str, Any]]:
    ended = status("--json")
    assert ended.returncode == 0, ended.stderr
    found: list[dict[str, Any]] = json.loads(ended.stdout)
    return found


def ready(process: subprocess.Popen[str], count: int) -> None:
    assert process.stdout
    said = [process.stdout.readline().split() for _ in range(count)]
    assert sorted(said) == [[f"[{rank}]", "ready"] for rank in range(count)]


def members_of(run: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    (group,) = run["groups"]
    assert group["name"] == "default"
    return {member["role"]: member for member in group["members"]}


def test_no_run_is_an_error() -> None:
    ended = status()
    assert (ended.returncode, ended.stdout) == (69, "")
    assert ended.stderr == "orcalike: no program of yours is running\n"
    assert status("--job", "beef").stderr == "orcalike: there is no run 'beef' of yours\n"


def test_how_a_program_stands(cli: Cli) -> None:
    program = cli.write(PROGRAM)
    with cli.started("--sequencer", "witness", "-n", "2", program) as process:
        ready(process, 2)
        (run,) = runs()
        assert (run["program"], run["nprocs"], run["ended"]) == (program, 2, [])
        processes = {each["role"]: each for each in run["processes"]}
        assert processes.keys() == {0, 1, "witness"}
        for each in processes.values():
            assert each["host"] == socket.gethostname()
            assert os.path.exists(f"/proc/{each['pid']}")
            assert each["rss"] > 1 << 20
            assert each["cpu_seconds"] > 0
        members = members_of(run)
        assert run["groups"][0]["sequencer"] == "witness"
        for rank in (0, 1):
            member = members[rank]
            assert (member["state"], member["size"], member["objects"]) == ("in", 2, 3)
            assert member["sent"] >= 10
            assert member["waiting"] == 1  # the same call, at each replica
        assert len({member["view"] for member in members.values()}) == 1
        until(lambda: {each["lag"] for each in members_of(runs()[0]).values()} == {0})
        table = status("--job", run["job"]).stdout
        assert re.search(
            rf"^job {run['job']} · {program} · up 0:\d\d:\d\d · 2 ranks$", table, re.MULTILINE
        )
        assert re.search(r"^group default · view \d+ · sequencer: witness$", table, re.MULTILINE)
        pid = processes[1]["pid"]
        assert re.search(
            rf"^1 +\S+ +{pid} +member +\d+\.\ds +\d+M +\d+ +\d+ +3 +1$", table, re.MULTILINE
        )
        process.communicate("\n", timeout=cli.deadline)
    assert process.returncode == 0


def test_a_process_that_does_not_answer(cli: Cli) -> None:
    with cli.started("-n", "2", cli.write(PROGRAM)) as process:
        ready(process, 2)
        pid = {each["role"]: each["pid"] for each in runs()[0]["processes"]}[1]
        os.kill(pid, signal.SIGSTOP)
        try:
            (run,) = runs()
            assert members_of(run)[1]["next"] is None
            assert re.search(rf"^1 +\S+ +{pid} +no answer ", status().stdout, re.MULTILINE)
        finally:
            os.kill(pid, signal.SIGCONT)
        process.communicate("\n", timeout=cli.deadline)


def test_for_which_members_a_group_waits(cli: Cli) -> None:
    """Of three ranks one is cut off: it is blocked, and says for which members and by which rule."""
    with cli.started("-n", "3", cli.write(PROGRAM)) as process:
        ready(process, 3)
        (run,) = runs()
        cut = [sys.executable, "-m", "orcalike", "chaos", "partition", "0,1/2"]
        subprocess.run(cut, check=True, capture_output=True, timeout=280)
        until(lambda: members_of(runs()[0])[2]["state"] == "blocked")
        (run,) = runs()
        assert members_of(run)[2]["waits_for"] == ["rank 0", "rank 1"]
        assert members_of(run)[2]["rule"] == "1 of 3 members are no majority"
        until(lambda: runs()[0]["groups"][0]["members"][0]["size"] == 2)
        expected = "blocked: waits for rank 0 and rank 1: 1 of 3 members are no majority"
        assert expected in status().stdout.splitlines()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=cli.deadline)


def test_it_watches_until_ctrl_c(cli: Cli) -> None:
    with cli.started("-n", "1", cli.write(PROGRAM)) as process:
        ready(process, 1)
        terminal = pexpect.spawn(
            sys.executable, ["-m", "orcalike", "status", "--watch"], timeout=280, encoding="utf-8"
        )
        for _ in range(2):
            terminal.expect("sequencer: rank 0")
        terminal.sendintr()
        terminal.expect(pexpect.EOF)
        terminal.close()
        assert terminal.exitstatus == 0
        process.communicate("\n", timeout=cli.deadline)
