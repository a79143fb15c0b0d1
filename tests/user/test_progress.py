"""One bar for all ranks: which of them writes it, what it says, and how rarely."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.objects.progress_bar import Tally
from orcalike.testing.members import Members
from tests.lib.command import Cli
from tests.lib.processes import DEADLINE, is_readable

PROGRAM = """
import orcalike as orca

with orca.join() as group:
    mine = range(group.rank, 10, group.size)
    assert list(orca.progress(mine, group=group, name="squares")) == list(mine)
    assert list(orca.progress(iter("ab"), group=group)) == ["a", "b"]
    group.barrier()
"""


def test_the_totals_of_all_ranks_are_one_line(cli: Cli) -> None:
    ended = cli.run("-q", "-n", "3", cli.write(PROGRAM))
    assert ended.returncode == 0, ended.stderr
    lines = sorted(line for line in ended.stderr.splitlines() if "orcalike:" not in line)
    assert len(lines) == 2, lines
    assert lines[0].startswith("[0] progress: 6/6 in ")
    assert lines[1].startswith("[0] squares: 10/10 in ")


def test_a_bar_in_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    here, there = pty.openpty()
    command = [sys.executable, "program.py"]
    subprocess.run(command, cwd=tmp_path, stderr=there, check=True, timeout=DEADLINE)
    shown = ""
    while shown.count("\n") < 2:
        assert is_readable(here, DEADLINE), shown
        shown += os.read(here, 1000).decode()
    os.close(here)
    os.close(there)
    assert "\rsquares: 10/10 in " in shown


NEVER = 1 << 60
"""A version that no tally has: to wait for a later one is to wait until the tally is dropped."""


def test_items_cost_no_writes(capsys: pytest.CaptureFixture[str]) -> None:
    with orca.join() as group:
        before = group._runtime.sender.writes
        assert sum(1 for _ in orca.progress(range(100_000), group=group)) == 100_000
        assert group._runtime.sender.writes - before < 1_000
    assert capsys.readouterr().err.startswith("progress: 100,000/100,000 in ")


def test_a_bar_that_is_through_leaves_nothing_behind() -> None:
    with orca.join() as group:
        listeners = list(group._session.on_view)
        bar = orca.progress(range(10), group=group)
        assert next(bar) == 0
        tally = group.find(Tally, "orcalike progress 0 of progress")
        assert list(bar) == list(range(1, 10))
        with pytest.raises(orca.ObjectDropped):
            tally.after(NEVER)
        assert group._session.on_view == listeners


def test_a_member_that_leaves_before_it_began(capsys: pytest.CaptureFixture[str]) -> None:
    members = Members(2)
    mine = orca.progress(range(10), group=members[0])
    assert next(mine) == 0
    tally = members[0].find(Tally, "orcalike progress 0 of progress")
    assert list(mine) == list(range(1, 10))
    members.leave(1)
    with pytest.raises(orca.ObjectDropped):
        tally.after(NEVER)
    assert capsys.readouterr().err.startswith("progress: 10/10 in ")
    members.close()


def test_members_that_leave_and_loops_that_break(capsys: pytest.CaptureFixture[str]) -> None:
    members = Members(2)
    mine, theirs = (orca.progress(range(10), group=member) for member in members)
    assert [next(mine), next(mine), next(theirs), next(theirs), next(theirs)] == [0, 1, 0, 1, 2]
    theirs.close()  # type: ignore[attr-defined]
    members.leave(1)
    for _ in mine:
        pass
    members.close()
    assert capsys.readouterr().err.startswith("progress: 12/12 in ")
