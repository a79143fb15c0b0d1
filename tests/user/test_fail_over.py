"""Programs that go on when members die, hang or are cut off: what `orcalike run` is asked for.

Each rank counts in a shared object, without a pause, until the file `stop` is there. Then all that
are left compare what they have: each addition that a rank knows of is there exactly once.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lib.orders import IN_MEMORY, OVER_RANK, OVER_WITNESS
from tests.lib.own_runs import take_folder
from tests.lib.processes import is_alive
from tests.lib.warm import Fork, WarmCli, python

COUNTING = """
import json, pathlib, signal
import orcalike as orca

here = pathlib.Path({directory!r})
again = int(os.environ["ORCALIKE_RESTART_COUNT"])

def say(**facts): os.write(1, (json.dumps(dict(facts, rank=rank, again=again)) + "\\n").encode())

@orca.shared{options}
class Counts:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {{}}

    @orca.write
    def add(self, writer: str) -> int:
        self.counts[writer] = self.counts.get(writer, 0) + 1
        return self.counts[writer]

    @orca.read
    def all(self) -> dict[str, int]:
        return dict(self.counts)

with orca.join() as group:
    counts = group.share(Counts, "counts")
    me, mine = f"{{rank}}.{{again}}", 0
    say(event="ready", pid=os.getpid(), group_rank=group.rank, found=sum(counts.all().values()))
    while not (here / "stop").exists():
        assert counts.add(me) == mine + 1
        mine += 1
        if mine % 20 == 0:
            witnesses = [member.incarnation for member in group.view.others]
            replicas = len(group.view.replicas)
            say(event="on", mine=mine, at=time.monotonic(), witnesses=witnesses, replicas=replicas)
        time.sleep(0.005)
    group.barrier()
    say(event="end", mine=mine, counts=counts.all(), size=group.size)
    group.barrier()
"""

Facts = dict[str, Any]


class Run:
    """A run of the counting program, and what its ranks have said."""

    def __init__(self, process: Fork, directory: Path, *, resilient: bool) -> None:
        self.process = process
        self.directory = directory
        self.resilient = resilient
        self.said: list[Facts] = []

    def wait_for(
        self, event: str, holds: Callable[[Facts], object] = lambda fact: True, **facts: object
    ) -> Facts:
        """The next time that a rank says this, with these facts, of which something holds."""
        assert self.process.stdout
        for line in self.process.stdout:
            fact: Facts = json.loads(line.partition("] ")[2])
            self.said.append(fact)
            if fact["event"] == event and facts.items() <= fact.items() and holds(fact):
                return fact
        assert self.process.stderr
        raise AssertionError(f"no process said {event} {facts}: {self.process.stderr.read()}")

    def ready(self, *ranks: int) -> None:
        """Wait until these ranks have begun to count."""
        for rank in ranks:
            while not any(facts["rank"] == rank for facts in self.said):
                self.wait_for("ready")

    def go_on(self, *ranks: int) -> None:
        """Wait until each of these ranks has counted to 20 twice from now on."""
        now = time.monotonic()  # the same clock as in the ranks
        for rank in (*ranks, *reversed(ranks)):
            self.wait_for("on", lambda fact: fact["at"] > now, rank=rank)

    def end(self, *ranks: int, seconds: float) -> list[Facts]:
        """Stop the counting; all that are left agree, and nothing is lost or doubled."""
        (self.directory / "stop").touch()
        assert self.process.stdout
        for line in self.process.stdout:
            self.said.append(json.loads(line.partition("] ")[2]))
        assert self.process.stderr
        errors = self.process.stderr.read()
        assert self.process.wait(seconds) == 0, errors
        ends = [facts for facts in self.said if facts["event"] == "end"]
        assert sorted(facts["rank"] for facts in ends) == sorted(ranks), errors
        for facts in ends:
            assert facts["counts"] == ends[0]["counts"]
            assert facts["counts"][f"{facts['rank']}.{facts['again']}"] == facts["mine"]
        for facts in self.said if self.resilient else []:  # with r = 0 a death may take some along
            if facts["event"] == "on":
                assert ends[0]["counts"][f"{facts['rank']}.{facts['again']}"] >= facts["mine"]
        return ends


class Counting:
    """Starts runs of the counting program."""

    def __init__(self, cli: WarmCli, directory: Path, runs: Path) -> None:
        self.cli = cli
        self.directory = directory
        self.runs = runs

    @contextmanager
    def run(self, *flags: str, options: str = "") -> Iterator[Run]:
        source = COUNTING.format(directory=str(self.directory), options=options)
        limit = f"{self.cli.deadline:g}s"  # one that hangs ends, with its stacks
        with self.cli.started("-q", "--timeout", limit, *flags, self.cli.write(source)) as process:
            yield Run(process, self.directory, resilient="resilience" in options)

    def chaos(self, *arguments: str) -> str:
        (job,) = self.runs.iterdir()
        result = python("-m", "orcalike", "chaos", "--job", job.name, *arguments)
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    def end(self, run: Run, *ranks: int) -> list[Facts]:
        return run.end(*ranks, seconds=self.cli.deadline)


@pytest.fixture
def counting(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Counting:
    """The counting program; each test's run is alone in a folder of its own."""
    directory = take_folder(tmp_path_factory, monkeypatch)
    return Counting(WarmCli(tmp_path), tmp_path, directory / "orcalike")


SEQUENCERS = pytest.mark.parametrize("sequencer", ["witness", "rank"])


@pytest.mark.parametrize("order", [OVER_WITNESS, IN_MEMORY], ids=["witness", "memory"])
def test_without_failures(counting: Counting, order: tuple[str, ...]) -> None:
    """With a witness, or in memory; with neither: `test_short_pause_expels_no_member`."""
    with counting.run("-n3", *order) as run:
        run.ready(0, 1, 2)
        run.go_on(0, 1, 2)
        ends = counting.end(run, 0, 1, 2)
    assert [(facts["size"], facts["again"]) for facts in ends] == [(3, 0)] * 3


@pytest.mark.parametrize(
    ("order", "options"),
    [
        ((*OVER_WITNESS, "--tcp"), "(resilience=1)"),
        ((*OVER_RANK, "--unix"), ""),
        (IN_MEMORY, "(resilience=1)"),
    ],
    ids=["witness", "rank", "memory"],
)
def test_others_go_on_without_a_rank(
    counting: Counting, order: tuple[str, ...], options: str
) -> None:
    with counting.run("-n3", "--keep-going", *order, options=options) as run:
        run.ready(0, 1, 2)
        counting.chaos("kill", "1")
        run.go_on(0, 2)
        assert all(facts["size"] == 2 for facts in counting.end(run, 0, 2))


def test_ranks_go_on_without_the_witness(counting: Counting) -> None:
    with counting.run("-n3", "--keep-going", "--sequencer", "witness") as run:
        run.ready(0, 1, 2)
        assert counting.chaos("kill", "sequencer").startswith("killed the witness")
        run.go_on(0, 1, 2)
        killed = counting.chaos("kill", "sequencer")
        assert re.match(r"killed rank \d", killed)
        left = {0, 1, 2} - {int(killed.split()[2])}
        run.go_on(*left)
        counting.end(run, *left)


def test_the_sequencer_dies_time_and_again(counting: Counting) -> None:
    flags = ("-n5", "--keep-going", "--sequencer", "rank")
    with counting.run(*flags, options="(resilience=1)") as run:
        run.ready(0, 1, 2, 3, 4)
        left = [0, 1, 2, 3, 4]
        for _ in range(3):
            left.remove(int(counting.chaos("kill", "sequencer").split()[2]))
            run.go_on(*left)
        assert [facts["size"] for facts in counting.end(run, *left)] == [2, 2]


@pytest.mark.parametrize(
    ("order", "ranks"),
    [
        ((*OVER_WITNESS, "--unix"), (0,)),
        ((*OVER_RANK, "--tcp"), (1, 0)),
        (IN_MEMORY, (1, 0)),
    ],
    ids=["witness---unix", "rank---tcp", "memory"],
)
def test_rank_comes_back_and_gets_the_state(
    counting: Counting, order: tuple[str, ...], ranks: tuple[int, ...]
) -> None:
    """One after the other, rank 0 too, which makes the group if there is no witness."""
    with counting.run("-n3", "--restart", "1", *order) as run:
        run.ready(0, 1, 2)
        run.go_on(0, 1, 2)
        for rank in ranks:
            counting.chaos("kill", str(rank))
            back = run.wait_for("ready", rank=rank, again=1)
            assert back["group_rank"] == rank
            assert back["found"] > 0
            run.go_on(0, 1, 2)
        ends = counting.end(run, 0, 1, 2)
        assert all(facts["again"] == (facts["rank"] in ranks) for facts in ends)


def test_rank_joins_through_others_if_the_witness_is_dead(counting: Counting) -> None:
    flags = ("-n3", "--restart", "1", "--keep-going", "--sequencer", "witness")
    with counting.run(*flags) as run:
        run.ready(0, 1, 2)
        first = run.wait_for("on")["witnesses"]
        counting.chaos("kill", "witness")
        run.wait_for("on", lambda fact: fact["witnesses"] not in ([], first))
        counting.chaos("kill", "witness")  # one more time than it is started again
        run.wait_for("on", witnesses=[])
        run.go_on(0, 1, 2)
        counting.chaos("kill", "1")
        assert run.wait_for("ready", rank=1, again=1)["found"] > 0
        run.go_on(0, 1, 2)
        counting.end(run, 0, 1, 2)


def test_the_witness_comes_back_as_a_member(counting: Counting) -> None:
    with counting.run("-n2", "--restart", "1", "--sequencer", "witness", "--tcp") as run:
        run.ready(0, 1)
        first = run.wait_for("on")["witnesses"]
        assert len(first) == 1
        counting.chaos("kill", "witness")
        run.wait_for("on", lambda fact: fact["witnesses"] not in ([], first))
        counting.chaos("kill", "0")
        assert run.wait_for("ready", rank=0, again=1)["found"] > 0
        run.go_on(0, 1)
        counting.end(run, 0, 1)


def test_the_witness_of_an_order_in_memory_comes_back_when_it_was_out(counting: Counting) -> None:
    """In the same process, whose pump has served its stack before."""
    with counting.run("-n4", "--restart", "1", "--keep-going") as run:
        run.ready(0, 1, 2, 3)
        first = run.wait_for("on")["witnesses"]
        assert len(first) == 1
        paused = re.search(r"the witness \(pid (\d+)\)", counting.chaos("pause", "witness", "1h"))
        assert paused is not None
        counting.chaos("kill", "1")  # the next view is without the witness
        run.wait_for("on", witnesses=[])
        os.kill(int(paused[1]), signal.SIGCONT)
        run.wait_for("on", lambda fact: fact["witnesses"] not in ([], first))
        assert is_alive(int(paused[1]))
        run.go_on(0, 1, 2, 3)
        counting.end(run, 0, 1, 2, 3)


@SEQUENCERS
def test_sequencer_that_was_paused_is_out(counting: Counting, sequencer: str) -> None:
    """It learns that it was expelled when it goes on; a rank is started again then, and joins."""
    flags = ("-n3", "--restart", "1", "--keep-going", "--sequencer", sequencer)
    with counting.run(*flags) as run:
        run.ready(0, 1, 2)
        stopped = counting.chaos("pause", "sequencer", "5s")
        if sequencer == "witness":
            assert stopped.startswith("the witness")
            run.go_on(0, 1, 2)
        else:
            assert stopped.startswith("rank 0")
            run.go_on(1, 2)
            assert run.wait_for("ready", rank=0, again=1)["found"] > 0
            run.go_on(0, 1, 2)
        counting.end(run, 0, 1, 2)


@pytest.mark.parametrize("order", [OVER_RANK, IN_MEMORY], ids=["rank", "memory"])
def test_short_pause_expels_no_member(counting: Counting, order: tuple[str, ...]) -> None:
    with counting.run("-n3", *order) as run:
        run.ready(0, 1, 2)
        for rank in (1, 0):
            counting.chaos("pause", str(rank), "100ms")
            run.go_on(0, 1, 2)
        ends = counting.end(run, 0, 1, 2)
    assert [(facts["size"], facts["again"]) for facts in ends] == [(3, 0)] * 3


@SEQUENCERS
def test_partition_heals_to_one_group(counting: Counting, sequencer: str) -> None:
    """A member that was cut off from most is expelled; its process ends, is restarted, and joins."""
    flags = ("-n3", "--restart", "1", "--keep-going", "--sequencer", sequencer)
    with counting.run(*flags) as run:
        run.ready(0, 1, 2)
        counting.chaos("partition", "0,1/2")
        run.wait_for("on", rank=0, replicas=2)  # they write for a while before they miss it
        counting.chaos("heal")
        assert run.wait_for("ready", rank=2, again=1)["found"] > 0
        run.go_on(0, 1, 2)
        assert {facts["size"] for facts in counting.end(run, 0, 1, 2)} == {3}


def test_a_cut_off_group_goes_on_when_it_is_healed(counting: Counting) -> None:
    """None of three parts is enough: all wait, and go on.

    The links do not come back all at once: the last may find that the others have gone on.
    """
    flags = ("-n3", "--restart", "1", "--keep-going", "--sequencer", "rank")
    with counting.run(*flags) as run:
        run.ready(0, 1, 2)
        counting.chaos("partition", "0/1/2", "--for", "2s")
        run.go_on(0, 1, 2)
        ends = counting.end(run, 0, 1, 2)
        assert {facts["size"] for facts in ends} == {3}
        assert sum(facts["again"] for facts in ends) <= 1


def kill_at_once(*pids: int) -> None:
    """Kill processes. One that is stopped agrees to no view without one that was killed before it."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)


def test_more_losses_than_the_degree_covers_end_the_run(counting: Counting, tmp_path: Path) -> None:
    """With r = 1 two of three at once are one too many."""
    flags = ("-n3", "--keep-going", "--sequencer", "rank")
    with counting.run(*flags, options="(resilience=1)") as run:
        run.ready(0, 1, 2)
        run.go_on(0, 1, 2)
        pids = {f["rank"]: f["pid"] for f in run.said if f["event"] == "ready"}
        kill_at_once(pids[1], pids[2])
        assert run.process.stderr
        errors = run.process.stderr.read()
        assert run.process.wait(counting.cli.deadline) == 74, errors
        last = errors.splitlines()[-1]
        assert "blocked for good: the group waits for rank 1 and rank 2, which have ended" in last


@pytest.mark.parametrize("order", [OVER_RANK, IN_MEMORY], ids=["rank", "memory"])
def test_too_few_for_the_degree_end_the_run(counting: Counting, order: tuple[str, ...]) -> None:
    """One after the other the group may go on without them; but a write needs two members."""
    flags = ("-n3", "--keep-going", *order)
    with counting.run(*flags, options="(resilience=1)") as run:
        run.ready(0, 1, 2)
        counting.chaos("kill", "1")
        run.go_on(0, 2)
        counting.chaos("kill", "2")
        assert run.process.stderr
        errors = run.process.stderr.read()
        assert run.process.wait(counting.cli.deadline) == 74, errors
        last = errors.splitlines()[-1]
        assert (
            "blocked for good: the group waits for more members than there are ranks left" in last
        )


def test_all_lost_and_started_again_is_lost(counting: Counting) -> None:
    """Both were killed at once: those in their places find no member that has the state."""
    with counting.run("-n2", "--restart", "3", "--sequencer", "rank") as run:
        run.ready(0, 1)
        pids = {f["rank"]: f["pid"] for f in run.said if f["event"] == "ready"}
        kill_at_once(pids[0], pids[1])
        assert run.process.stderr
        errors = run.process.stderr.read()
        assert run.process.wait(counting.cli.deadline) == 74, errors
        assert "blocked for good: all processes that were in the group have ended" in errors
