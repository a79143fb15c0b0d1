"""`orcalike status --ring`: the order in shared memory of a program that runs, read there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.lib import warm
from tests.lib.own_runs import LOOKING
from tests.lib.processes import stop, until

if TYPE_CHECKING:
    from tests.lib.command import Cli

pytestmark = pytest.mark.usefixtures("own_runs")

#: For each line that comes to rank 0 it writes ten times; with no more lines all end.
PROGRAM = """
import orcalike as orca
from orcalike.objects import Counter, Event

with orca.join("harbour") as group:
    counter, done = group.share(Counter, "n"), group.share(Event, "done")
    group.barrier()
    print("ready", flush=True)
    if rank == 0:
        for _ in sys.stdin:
            for _ in range(10):
                counter.add(1)
            print("written", flush=True)
        done.set()
    done.wait()
"""


def status(*arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.python(*LOOKING, "status", *arguments)


def ring() -> dict[str, Any]:
    """The one order of the one run."""
    done = status("--ring", "--json")
    assert done.returncode == 0, done.stderr
    [run] = json.loads(done.stdout)
    [found] = run["rings"]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def program(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """Three ranks that are ready; none is suspected for as long as the test takes."""
    monkeypatch.setenv("ORCALIKE_DETECTION", "60s")
    with cli.started("-n", "3", "-q", cli.write(PROGRAM)) as process:
        assert process.stdout
        said = sorted(process.stdout.readline() for _ in range(3))
        assert said == [f"[{rank}] ready\n" for rank in range(3)]
        yield process


def write(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    assert process.stdout
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "[0] written\n"


def test_how_far_each_member_is(program: subprocess.Popen[str]) -> None:
    before = ring()
    assert (before["group"], before["slots"]) == ("harbour", 65_536)
    assert [each["role"] for each in before["members"]] == [0, 1, 2]
    stopped = before["members"][2]["pid"]
    stop(stopped)
    try:
        write(program)
        after = ring()
        assert after["next"] >= before["next"] + 10
        first, _, last = after["members"]
        assert (first["state"], first["applied"], first["lag"]) == ("member", after["next"], 0)
        assert (last["pid"], last["lag"]) == (stopped, after["next"] - last["applied"])
        assert last["lag"] >= 10
        assert after["least"] == last["applied"]
        shown = " ".join(status("--ring").stdout.split())
        assert "order of group harbour in shared memory · 65,536 slots · lap 0 · " in shown
        assert f" 2 {stopped} member {last['applied']} " in shown
        assert " · primary · order: shared memory · resilience 0 " in shown
        [group] = json.loads(status("--json").stdout)[0]["groups"]
        assert (group["order"], group["sequencer"]) == ("shared memory", None)
        refused = warm.python(*LOOKING, "chaos", "kill", "sequencer")
        assert refused.returncode == 1
        assert "the order is in shared memory: no member is the sequencer" in refused.stderr
    finally:
        os.kill(stopped, signal.SIGCONT)
    until(lambda: {each["lag"] for each in ring()["members"]} == {0}, "it has applied the rest")
    until(lambda: all(each["asleep"] for each in ring()["members"]), "nothing is to be done")
    assert program.stdin
    program.stdin.close()
    assert program.wait() == 0


def test_a_witness_that_keeps_the_state_comes_after_the_ranks(cli: Cli) -> None:
    with cli.started("-n", "2", "-q", "--restart", "1", cli.write(PROGRAM)) as process:
        assert process.stdout
        assert {process.stdout.readline() for _ in range(2)} == {"[0] ready\n", "[1] ready\n"}
        assert [each["role"] for each in ring()["members"]] == [0, 1, "witness"]
        done = status("--ring")
        assert done.returncode == 0, done.stderr
        firsts = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
        assert firsts[-3:] == ["0", "1", "witness"]
