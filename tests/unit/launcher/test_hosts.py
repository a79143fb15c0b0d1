"""The hosts of a run: how many are connected at a time, which trouble ends the run, and where each process is then."""

from __future__ import annotations

import selectors
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from orcalike._version import __version__
from orcalike.launcher import hosts
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.greeting import Assignment, HostReport
from orcalike.launcher.host_list import parse_hosts
from orcalike.launcher.host_report import program_digest
from orcalike.launcher.hosts import STARTS_MAX, TRIES_MAX, Hosts
from orcalike.launcher.placement import Placement
from orcalike.launcher.probes import NO_DATAGRAMS, PROBE_SECONDS, Door, Probes
from orcalike.launcher.run_keys import RunKey
from orcalike.launcher.run_plan import RunPlan
from orcalike.launcher.timers import Timers

PYTHON = "{}.{}".format(*sys.version_info)
WHICH = "say at which address others reach it: --interface NAME or NETWORK, or --advertise"
LET_BOTH = "have the firewalls between them let both through, at all ports"


class Host:
    """In place of a `RemoteHost`: what the test has it do is all that comes of it."""

    cannot_start = False

    def __init__(
        self, name: str, command: Sequence[str], assignment: Assignment, observer: Hosts, **_: Any
    ) -> None:
        self.name, self.command, self.assignment = name, command, assignment
        self.report: HostReport | None = None
        self.tries = self.pid = 0
        self.connected = False
        self.calls: list[tuple[str, Any]] = []
        self._observer = cast(Any, observer)

    def connect(self) -> None:
        self.tries += 1
        if self.cannot_start:
            raise FileNotFoundError(2, "No such file or directory")
        self.connected, self.pid = True, 4000 + self.assignment.node

    def close(self) -> None:
        self.calls.append(("close", None))

    def extend_lease(self, seconds: float) -> None:
        self.calls.append(("lease", seconds))

    def resume(self) -> None:
        self.calls.append(("resume", None))

    def probe(self, addresses: list[str]) -> None:
        self.calls.append(("probe", addresses))

    # What becomes of it.

    def answers(self, door: str = "", **changes: Any) -> None:
        """Its agent reports."""
        node, slots = self.assignment.node, self.assignment.slots
        values: dict[str, Any] = {
            "version": __version__,
            "python": PYTHON,
            "pid": 7,
            "cores": 1,
            "program": program_digest(self.assignment.plan),
            "directory": True,
            "host": f"10.0.0.{node}",
            "door": door or f"tcp:10.0.0.{node}:1",
            "addresses": tuple(f"tcp:10.0.0.{node}:{100 + each}" for each in range(slots + 1)),
        }
        self.report = HostReport(**values | changes)
        self._observer.ready(self)

    def fails(self, returncode: int = 255, said: str = "Connection closed by") -> None:
        """Its command ends without an answer."""
        self.connected, self.pid = False, 0
        self._observer.failed(self, returncode, said)

    def probed(self, *troubles: str) -> None:
        """Whether it reached the launcher's host, and then each of the others."""
        self._observer.probed(self, list(troubles))

    def is_lost(self) -> None:
        self.connected = False
        self._observer.lost(self, "no more")


class Local:
    """In place of the `LocalHost`."""

    name = "localhost"

    def __init__(self) -> None:
        self.own = ""
        self.commands: Callable[[], set[int]] = set
        self.template_for: int | None = None
        self._ports = iter(range(200, 300))

    def reserve(self, roles: Any) -> list[str]:
        return [f"tcp:{self.own}:{next(self._ports)}" for _ in roles]

    def load_template(self, ranks: int) -> None:
        self.template_for = ranks


class NoProbes:
    """In place of `Probes`: the test says what this host reaches."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self.addresses: list[str] = []
        self.done: Callable[[list[str]], None] = lambda troubles: None
        NoProbes.last = self

    last: ClassVar[NoProbes]

    def try_all(self, addresses: list[str], done: Callable[[list[str]], None]) -> None:
        self.addresses, self.done = addresses, done

    def expire(self, now: float) -> None:
        """Nothing is."""


class Run:
    """The hosts of a run, and what is reported of them."""

    def __init__(self, selector: selectors.BaseSelector, directory: Path, listed: str, **plan: Any):
        program = directory / "prog.py"
        program.write_text("pass")
        parsed = parse_hosts(listed)
        values: dict[str, Any] = {
            "nprocs": sum(host.slots for host in parsed),
            "directory": directory,
        }
        self.plan = RunPlan(identity="j", seed=1, program="prog.py", **values | plan)
        self.timers, self.selector, self.local = Timers(), selector, Local()
        self.notices: list[str] = []
        self.placements: list[Placement] = []
        self.errors: list[LaunchError] = []
        self.reports: list[tuple[Any, ...]] = []
        self.hosts = Hosts(
            self.plan,
            parsed,
            cast(Any, self.local),
            RunKey(b"k"),
            via="ssh",
            interface="",
            remote_python="",
            selector=selector,
            timers=self.timers,
            reaper=cast(Any, None),
            notice=self.notices.append,
        )
        self.hosts.on_ready = self.placements.append
        self.hosts.on_failed = self.errors.append
        self.hosts.on_lost = lambda host, why: self.reports.append(("lost", host.name, why))
        self.hosts.on_slow = lambda host: self.reports.append(("slow", host.name))
        self.hosts.on_member_ended = lambda *values: self.reports.append(("ended", *values))

    @property
    def remotes(self) -> list[Host]:
        return cast(list[Host], list(self.hosts._remotes.values()))

    def connect(self) -> None:
        """All connect and answer."""
        self.hosts.connect()
        for host in self.remotes:
            host.answers()

    def failure(self) -> str:
        """Why the run could not begin: it is said once, and nothing is placed."""
        (error,) = self.errors
        assert self.placements == []
        assert not self.hosts.connecting
        return str(error)

    def loop_until(self, holds: Callable[[], object]) -> None:
        while not holds():
            registered = self.selector.get_map()
            for key, _ in self.selector.select(30):
                if registered.get(key.fd) is key:
                    key.data()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Run]]:
    monkeypatch.setattr(hosts, "RemoteHost", Host)
    monkeypatch.setattr(hosts, "Probes", NoProbes)
    monkeypatch.setattr(hosts, "own_host", lambda **_: "127.0.0.1")
    made: list[Run] = []
    with selectors.DefaultSelector() as selector:

        def make(listed: str, **plan: Any) -> Run:
            made.append(Run(selector, tmp_path, listed, **plan))
            return made[-1]

        yield make
        for each in made:
            for door in () if each.placements else each.hosts._doors:
                door.close()


def test_so_many_connections_are_made_at_a_time(run: Callable[..., Run]) -> None:
    made = run(",".join(f"h{number}" for number in range(STARTS_MAX + 3)))
    assert made.hosts.closed
    made.hosts.connect()
    assert [host.connected for host in made.remotes] == [True] * STARTS_MAX + [False] * 3
    assert made.local.commands() == set(range(4000, 4000 + STARTS_MAX))
    made.remotes[0].answers()
    made.remotes[1].fails()
    under_way = [host.connected for host in made.remotes]
    assert under_way == [True, False, *([True] * STARTS_MAX), False]
    assert not made.hosts.closed
    made.remotes[2].answers()
    made.remotes[3].answers()
    assert all(host.connected for host in made.remotes)  # also that which was dropped
    assert made.remotes[1].tries == 2
    assert (made.errors, made.placements) == ([], [])


def test_a_connection_that_is_dropped_again_and_again(run: Callable[..., Run]) -> None:
    made = run("a,b")
    made.hosts.connect()
    for _ in range(TRIES_MAX - 1):
        made.remotes[1].fails()
        assert made.remotes[1].connected
    made.remotes[1].fails()
    assert made.failure().startswith("cannot reach host b")
    assert made.remotes[1].tries == TRIES_MAX
    made.remotes[0].fails()
    assert not made.remotes[0].connected  # it is not tried again
    assert len(made.errors) == 1


def test_a_command_that_cannot_be_started(
    run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run("a,b")
    monkeypatch.setattr(Host, "cannot_start", True)
    made.hosts.connect()
    assert made.failure().startswith("cannot reach host a: ssh: No such file or directory; install")
    assert [host.tries for host in made.remotes] == [1, 0]


def test_a_host_that_refuses_is_not_asked_again(run: Callable[..., Run]) -> None:
    made = run("a,b")
    made.hosts.connect()
    made.remotes[1].fails(255, "Permission denied (publickey)")
    assert "host b" in made.failure()
    assert made.remotes[1].tries == 1


@pytest.mark.parametrize("trouble", ["other", "refuses"])
def test_nothing_more_is_connected_when_the_run_cannot_begin(
    run: Callable[..., Run], trouble: str
) -> None:
    made = run(",".join(f"h{number}" for number in range(STARTS_MAX + 4)))
    made.hosts.connect()
    if trouble == "other":
        made.remotes[0].answers(program="another")
    else:
        made.remotes[0].fails(255, "Permission denied (publickey)")
    made.failure()
    made.remotes[1].answers()
    made.remotes[2].fails()
    assert [host.tries for host in made.remotes] == [1] * STARTS_MAX + [0] * 4
    assert len(made.errors) == 1


def test_a_host_that_cannot_take_part_is_named_at_once(run: Callable[..., Run]) -> None:
    made = run("a,b")
    made.hosts.connect()
    made.remotes[1].answers(program="another")
    assert "is another one on host b" in made.failure()
    assert made.errors[0].code == 2
    made.remotes[0].answers()
    made.remotes[0].is_lost()
    assert len(made.errors) == 1


def test_a_host_that_is_lost_before_the_run_begins_ends_it(run: Callable[..., Run]) -> None:
    made = run("a,b")
    made.hosts.connect()
    made.hosts.slow(cast(Any, made.remotes[0]))
    made.remotes[0].answers()
    made.remotes[0].is_lost()
    assert made.failure() == "host a is lost: no more"
    assert made.errors[0].code == 69
    made.hosts.slow(cast(Any, made.remotes[1]))
    assert made.reports == [("slow", "a"), ("lost", "a", "no more")][:1]


def test_what_is_reported_while_it_runs(run: Callable[..., Run]) -> None:
    made = run("a,b")
    made.connect()
    for host in made.remotes:
        host.probed("", "", "")
    assert len(made.placements) == 1
    made.hosts.said(cast(Any, made.remotes[0]), "a line")
    made.hosts.member_ended(cast(Any, made.remotes[1]), 77)
    made.hosts.extend_leases(60.0)
    made.hosts.resume()
    made.remotes[1].is_lost()
    made.remotes[1].fails()
    assert made.notices == ["[a] a line"]
    assert made.reports == [("ended", 77, "b"), ("lost", "b", "no more")]
    assert made.errors == []
    made.hosts.close()
    assert [host.calls[1:] for host in made.remotes] == [
        [("lease", 60.0), ("resume", None), ("close", None)],
        [("lease", 60.0), ("resume", None)],
    ]


def test_nothing_is_connected_any_more_at_the_end(run: Callable[..., Run]) -> None:
    made = run(",".join(f"h{number}" for number in range(STARTS_MAX + 1)))
    made.hosts.connect()
    made.hosts.close()
    made.remotes[0].answers()
    made.remotes[1].fails()
    assert not made.remotes[STARTS_MAX].connected
    assert not made.remotes[1].connected
    assert (made.errors, made.placements) == ([], [])


def places(placement: Placement) -> dict[Any, tuple[str, str]]:
    """Of each process, its host and address."""
    return {
        role: (placement.host(role).name, placement.start(role).listen)
        for role in placement._places
    }


def test_places_of_all_processes(run: Callable[..., Run]) -> None:
    """Ranks on the hosts in the order of the list, the witness here, and places to spare."""
    made = run("a:2,localhost:2,b:2", nprocs=3)
    made.connect()
    doors = [made.hosts._doors[0].address, "tcp:10.0.0.0:1", "tcp:10.0.0.2:1"]
    assert made.remotes[0].calls == made.remotes[1].calls == [("probe", doors)]
    assert made.local.template_for == 2
    for host in made.remotes:
        host.probed("", "", "")
    assert made.placements == []  # this host has not tried yet, as its ranks must
    assert NoProbes.last.addresses == doors[1:]
    NoProbes.last.done(["", ""])
    (placement,) = made.placements
    assert places(placement) == {
        0: ("a", "tcp:10.0.0.0:100"),
        1: ("a", "tcp:10.0.0.0:101"),
        2: ("localhost", "tcp:127.0.0.1:200"),
        None: ("localhost", "tcp:127.0.0.1:202"),
    }
    assert [host.name for host in placement.hosts] == ["a", "localhost", "b", "localhost"]
    starts = {role: placement.start(role) for role in (0, 1, 2, None)}
    assert {role: (start.node, start.slot) for role, start in starts.items()} == {
        0: (0, 0),
        1: (0, 1),
        2: (1, 0),
        None: (3, 0),
    }
    moved = []
    while placement.move(0):
        moved.append((placement.host(0).name, placement.start(0).listen))
    assert moved == [("localhost", "tcp:127.0.0.1:201"), ("b", "tcp:10.0.0.2:100")]


@pytest.mark.parametrize(
    ("sequencer", "here", "witness"),
    [
        ("witness", "", ("localhost", "tcp:127.0.0.1:200")),
        ("witness", "no route", ("a", "tcp:10.0.0.0:102")),
        ("rank", "no route", None),
    ],
)
def test_the_witness_is_where_all_reach_it(
    run: Callable[..., Run], sequencer: str, here: str, witness: tuple[str, str] | None
) -> None:
    made = run("a:2,b:2", sequencer=sequencer)
    made.connect()
    made.remotes[0].probed("", "", "")
    made.remotes[1].probed(here, "", "")
    (placement,) = made.placements
    assert places(placement).get(None) == witness
    assert witness is None or placement.start(None).slot == 0
    assert made.local.template_for == 0
    assert not made.selector.get_map()  # the door is closed


@pytest.mark.parametrize(
    ("troubles", "message"),
    [
        (
            ["", "", "timed out"],
            f"host a cannot reach host c at 10.0.0.2 (a spare host): timed out; {WHICH} c=ADDRESS",
        ),
        (
            ["refused", "", ""],
            f"host a cannot reach this host at 127.0.0.1 (ranks 1 to 2): refused; {WHICH} localhost=ADDRESS",
        ),
        (
            ["", NO_DATAGRAMS, ""],
            f"host a cannot reach host a at 10.0.0.0 (rank 0): {NO_DATAGRAMS}; {LET_BOTH}",
        ),
    ],
    ids=["spare", "this", "itself"],
)
def test_a_host_that_another_does_not_reach(
    run: Callable[..., Run], troubles: list[str], message: str
) -> None:
    made = run("a,localhost:2,c", nprocs=3)
    made.connect()
    made.remotes[0].probed(*troubles)
    assert made.failure() == message
    made.remotes[1].probed("", "", "")
    NoProbes.last.done(["", "x"])
    assert len(made.errors) == 1
    assert made.placements == []


def test_answers_that_were_not_asked_for_change_nothing(run: Callable[..., Run]) -> None:
    made = run("a,b")
    made.hosts.connect()
    made.remotes[0].probed("", "", "")
    for host in made.remotes:
        host.answers()
    made.remotes[0].probed("", "", "")
    made.remotes[0].probed("", "", "no route")  # it has answered
    made.remotes[1].probed("")  # of other addresses
    assert (made.errors, made.placements) == ([], [])
    made.remotes[1].probed("", "", "")
    assert len(made.placements) == 1


def test_this_host_tries_whether_it_reaches_the_others(
    run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "Probes", Probes)
    made = run("a,localhost")
    door = Door(made.selector, "127.0.0.1")
    made.hosts.connect()
    made.remotes[0].answers(door=door.address)
    made.remotes[0].probed("", "")
    made.loop_until(lambda: made.placements or made.errors)
    assert made.errors == []
    assert made.timers.next() is None
    door.close()


def test_this_host_gives_up_what_it_does_not_reach(
    run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "Probes", Probes)
    made = run("localhost,a")
    made.hosts.connect()
    made.remotes[0].answers(door="tcp:[fe80::1]:9")
    assert made.failure().startswith(
        "this host cannot reach host a at 10.0.0.1 (rank 1): Invalid argument; say at which"
    )


def test_this_host_does_not_wait_for_long(
    run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lets connections through and no datagrams is given up after a while."""
    monkeypatch.setattr(hosts, "Probes", Probes)
    made = run("localhost,a")
    door = Door(made.selector, "127.0.0.1")
    made.selector.unregister(door._datagrams)  # they come to nothing
    made.hosts.connect()
    before = time.monotonic()
    made.remotes[0].answers(door=door.address)
    at = made.timers.next()
    assert at is not None
    assert before + PROBE_SECONDS <= at <= time.monotonic() + PROBE_SECONDS
    made.remotes[0].probed("", "")
    assert (made.errors, made.placements) == ([], [])
    made.timers.expire(at)
    assert made.failure().startswith("this host cannot reach host a at 10.0.0.1 (rank 1): ")
    door.close()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ValueError("no interface eth9"), "no interface eth9"),
        (OSError(99, "Cannot assign"), "Cannot assign"),
        (OSError("of no number"), "of no number"),
    ],
)
def test_a_host_without_an_address_for_the_others(
    run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, error: Exception, why: str
) -> None:
    def none(**_: Any) -> str:
        raise error

    monkeypatch.setattr(hosts, "own_host", none)
    made = run("a,b")
    made.connect()
    assert made.failure() == (
        f"this host has no address for the others: {why}; {WHICH} localhost=ADDRESS"
    )
    assert [host.calls for host in made.remotes] == [[], []]


@pytest.mark.parametrize(
    ("listed", "interface", "advertise", "asked"),
    [
        ("a,localhost", "", "", (None, None)),
        ("a,localhost", "eth9", "10.0.0.7", ("10.0.0.7", "eth9")),
        ("a", "eth9", "", (None, "eth9")),
    ],
)
def test_by_what_it_chooses_its_address(
    run: Callable[..., Run],
    monkeypatch: pytest.MonkeyPatch,
    listed: str,
    interface: str,
    advertise: str,
    asked: tuple[str | None, str | None],
) -> None:
    values: list[dict[str, Any]] = []

    def noted(**given: Any) -> str:
        values.append(given)
        return "127.0.0.1"

    monkeypatch.setattr(hosts, "own_host", noted)
    made = run(listed)
    made.hosts._interface = interface
    for number, host in enumerate(made.hosts.listed):
        if host.name == "localhost":
            made.hosts.listed[number] = host.replace(advertise=advertise)
    made.connect()
    (given,) = values
    assert (given["advertise"] or None, given["interface"]) == asked
    assert given["towards"] == ["10.0.0.0"]


def test_the_hosts_towards_which_an_agent_finds_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its connection says it; where an engine has started it, this host's addresses, the loopback ones last."""
    found = [("lo", "127.0.0.1"), ("lo", "::1")]
    found += [("eth0", f"10.0.0.{number}") for number in range(20)]
    monkeypatch.setattr(hosts, "own_addresses", lambda: found)
    assert hosts.own_hosts() == tuple(f"10.0.0.{number}" for number in range(16))
    monkeypatch.setattr(hosts, "own_addresses", lambda: found[:3])
    assert hosts.own_hosts() == ("10.0.0.0", "127.0.0.1", "::1")
    plan = RunPlan(identity="j", seed=1, program="prog.py")
    listed = parse_hosts("a,localhost,b")
    for via, towards in (("ssh", ()), ("slurm", hosts.own_hosts()), ("mpi", hosts.own_hosts())):
        made = list(hosts.assignments(listed, plan, RunKey(b"k"), cast(Any, via), "eth9"))
        assert [(each.name, each.node) for each in made] == [("a", 0), ("b", 2)]
        assert {(each.towards, each.interface) for each in made} == {(towards, "eth9")}
