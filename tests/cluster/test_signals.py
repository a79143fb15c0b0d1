"""Ranks that wait in orcalike and get a signal; members that stand still for a while."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest

if TYPE_CHECKING:
    from tests.cluster.conftest import Programs

WAYS = ["thread", "loop", "read", "barrier"]
RUN = ["-m", "orcalike", "run", "-n", "2", "--no-prefix", "-q"]


def pids(lines: list[str]) -> list[int]:
    """The ranks' processes, as they have told."""
    return [json.loads(line)["pid"] for line in lines]


@pytest.mark.parametrize("sequencer", ["witness", "rank"])
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_ends_ranks_that_wait(programs: Programs, way: str, sequencer: str) -> None:
    terminal = pexpect.spawn(
        sys.executable,
        [*RUN, "--sequencer", sequencer, programs.path("waiter.py"), way],
        env=programs.environment,
        timeout=30,
        encoding="utf-8",
    )
    told = []
    for _ in range(2):
        terminal.expect(r'\{"rank[^}]*\}')
        told.append(terminal.after)
    time.sleep(0.1)
    terminal.sendintr()
    began = time.monotonic()
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert time.monotonic() - began < 4, "it took a second signal to end them"
    assert terminal.before
    assert "stopping … (Ctrl-C again to kill)" in terminal.before
    assert terminal.before.count('{"tidied": true}') == 2
    assert "Traceback" not in terminal.before
    assert terminal.exitstatus == 130
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids(told))


@pytest.mark.parametrize("way", WAYS)
def test_sigusr1_shows_what_is_waited_for(programs: Programs, way: str) -> None:
    launcher = programs.start(*RUN, "waiter.py", way)
    facts = sorted((launcher.hear() for _ in range(2)), key=lambda fact: int(fact["rank"]))
    rank, pid = 1, facts[1]["pid"]
    expected = {
        "thread": r"thread MainThread .* waits \d+\.\d s: .*Gate\.walk of 'gate'|on 'gate'",
        "read": r"thread MainThread .* waits \d+\.\d s: .*Gate\.above.*'gate'",
        "barrier": r"thread MainThread .* waits \d+\.\d s: .*barrier",
        "loop": r"task Task-1 .* in on_loop",
    }[way]
    time.sleep(0.2)
    os.kill(pid, signal.SIGUSR1)
    shown = re.compile(rf"rank {rank} \(pid {pid}\):\n(  .*\n)*?  .*{expected}")
    programs.until(lambda: shown.search(launcher.said()), f"{expected} in what it shows")
    launcher.process.send_signal(signal.SIGINT)
    assert launcher.end() == 130


@pytest.mark.parametrize("slow", ["member", "sequencer"])
def test_a_member_that_stands_still_grows_nobodys_memory(programs: Programs, slow: str) -> None:
    """The window bounds what the others keep for it; it goes on where it was, if nobody expels it."""
    programs.environment["ORCALIKE_DETECTION"] = "600"
    members = [programs.start("flooder.py", "make", f"unix:{programs.directory}/maker")]
    address = str(members[0].hear()["address"])
    for _ in range(2):
        members.append(programs.start("flooder.py", "join", address))
        members[-1].hear()
    for member in members:
        assert member.hear() == {"ready": True}
    time.sleep(0.5)
    standing = members[0 if slow == "sequencer" else 2]
    moving = [member for member in members if member is not standing]
    programs.stop(standing)
    before = [member.resident() for member in moving]
    programs.until(lambda: all(member.state() == "S" for member in moving), "they wait for it")
    time.sleep(0.5)
    grown = [member.resident() - was for member, was in zip(moving, before, strict=True)]
    assert max(grown) < 64 << 20
    programs.go_on(standing)
    time.sleep(0.3)
    programs.call("stop")
    facts = [member.hear() for member in members]
    for fact in facts:
        assert fact["counts"] == {str(each["pid"]): each["written"] for each in facts}
        assert fact["digest"] == facts[0]["digest"]
    for member in members:
        assert member.end() == 0
        assert member.complaints() == ""
