"""Hosts whose clocks are hours apart, the wall clocks and those since boot: a run is none the worse for it."""

from __future__ import annotations

import re
import time

import pytest

from tests.lib.processes import DEADLINE, until
from tests.lib.ssh_hosts import STAYS, SshHosts, lines_until

#: Each rank says its own clocks, and the moments that all replicas have noted for the writes.
MOMENTS = """
import time
import orcalike as orca

@orca.shared
class Notes:
    def __init__(self):
        self.moments = []

    @orca.write
    def note(self):
        self.moments.append(orca.now())

    @orca.read
    def all_of_them(self):
        return self.moments

with orca.join() as group:
    notes = group.share(Notes, "notes")
    for _ in range(5):
        notes.note()
    group.barrier()
    moments = notes.all_of_them()
    print("moments", *moments, flush=True)
    print("clocks", time.time(), time.monotonic(), flush=True)
    group.barrier()
"""


#: Rank 0, which orders, is killed; rank 1 writes before and afterwards, twice.
SURVIVES = """
import os
import signal
import time
import orcalike as orca

@orca.shared
class Moment:
    @orca.write
    def show(self):
        return orca.now()

with orca.join() as group:
    moment = group.share(Moment, "moment")
    group.barrier()
    if group.rank == 1:
        moments = [moment.show()]
    group.barrier()
    if group.rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    while group.size > 2:
        time.sleep(0.05)
    if group.rank == 1:
        moments.append(moment.show())
        time.sleep(1)
        moments.append(moment.show())
        print("moments", *moments, flush=True)
    group.barrier()
"""


@pytest.fixture
def apart(two: SshHosts) -> SshHosts:
    """b is 5 hours ahead and was started two days earlier; c is 30 hours behind."""
    two.set_clocks("b", wall=5, since_boot=48)
    two.set_clocks("c", wall=-30, since_boot=1)
    return two


def said(output: str, what: str) -> list[list[float]]:
    """The numbers that each rank has said, by rank."""
    lines = re.findall(rf"^\[(\d)\] {what} (.*)$", output, re.MULTILINE)
    return [[float(word) for word in text.split()] for _, text in sorted(lines)]


@pytest.mark.parametrize("sequencer", ["witness", "rank"])
def test_a_run_over_clocks_that_are_apart(apart: SshHosts, sequencer: str) -> None:
    result = apart.run("-H", "localhost,b,c", "--sequencer", sequencer, apart.write(MOMENTS))
    assert result.returncode == 0, result.stderr
    (here, since), (ahead, earlier), (behind, _) = said(result.stdout, "clocks")
    hours = [round((wall - here) / 3600) for wall in (ahead, behind)]
    assert (hours, round((earlier - since) / 3600)) == ([5, -30], 48), "the clocks are apart"
    first, *others = said(result.stdout, "moments")
    assert len(first) == 15
    assert first == sorted(first)
    assert others == [first, first]
    assert abs(first[0] - here) < 3600, "the sequencer's clock, which is this host's"
    assert apart.rest() == []


def test_time_goes_on_after_the_loss_of_a_sequencer_that_was_ahead(apart: SshHosts) -> None:
    options = ("--sequencer", "rank", "--keep-going")
    result = apart.run("-H", "b,c:2", *options, apart.write(SURVIVES))
    assert result.returncode == 0, result.stderr
    ((before, after, later),) = said(result.stdout, "moments")
    assert before > time.time() + 4 * 3600, "the first sequencer's clock"
    assert before <= after
    assert later - after > 0.9, "it stood still"


def test_a_lost_host_is_noticed_by_no_wall_clock(apart: SshHosts) -> None:
    """Leases and the limits of time count what passes; figures of age, too."""
    go = apart.directory / "go"
    arguments = ("-H", "b,c:2", "--keep-going", apart.write(STAYS), str(go))
    with apart.started(*arguments) as run:
        assert run.stdout is not None
        assert sorted(run.stdout.readline() for _ in range(3)) == [
            f"[{n}] ready\n" for n in range(3)
        ]
        until(
            lambda: all(each["rss"] for each in apart.status()["processes"]), "figures", pause=0.2
        )
        ages = [each["age_seconds"] for each in apart.status()["processes"]]
        assert all(0 < age < DEADLINE for age in ages), ages
        apart.hosts["b"].cut()
        assert run.stderr is not None
        lost = lines_until(run.stderr, "host b is lost")
        states = {"running", "left"}
        until(
            lambda: {each["state"] for each in apart.status()["processes"]} == states,
            "a loss",
            pause=0.3,
        )
        go.touch()
        output, errors = run.communicate(timeout=DEADLINE)
        errors = lost + errors
    assert (run.returncode, sorted(output.splitlines())) == (0, ["[1] True 2", "[2] True 2"]), (
        errors
    )
    assert "host b is lost: nothing has come from it for 10 s" in errors
    apart.hosts["b"].mend()
    until(lambda: apart.rest() == [], "the end of all", pause=0.1)
