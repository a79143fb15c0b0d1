"""The witness of a run whose launcher the others cannot connect to: it is on the first host (docs/hosts.md)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lib.processes import DEADLINE, parent_of, until
from tests.lib.ssh_hosts import COUNTS, STAYS, SshHosts


@pytest.fixture
def behind_router(two: SshHosts) -> SshHosts:
    """The user's host reaches the others by ssh, and none of them connects to it."""
    for name in "bc":
        two.hosts[name].answer_only(two.hosts["a"], 22)
    return two


@contextlib.contextmanager
def under_way(
    hosts: SshHosts, listed: str, count: int, *options: str
) -> Iterator[subprocess.Popen[str]]:
    """A run of STAYS over hosts, whose ranks have met; at the end nothing is left."""
    go = hosts.directory / "go"
    with hosts.started("-H", listed, *options, hosts.write(STAYS), str(go)) as run:
        assert run.stdout is not None
        ready = sorted(run.stdout.readline() for _ in range(count))
        assert ready == [f"[{rank}] ready\n" for rank in range(count)]
        yield run
    until(lambda: hosts.rest() == [], "the end of all", pause=0.1)


def process(run: Any, role: int | str) -> Any:
    """What the status says of a process."""
    return next(each for each in run["processes"] if each["role"] == role)


def agree(hosts: SshHosts, *roles: int | str) -> bool:
    """Whether these are the members, and all of them are in one view."""
    (group,) = hosts.status()["groups"]
    there = {each["role"]: each for each in group["members"]}
    views = {each["view"] for each in there.values()}
    return there.keys() == set(roles) and views == {group["view"]} and None not in views


def finish(hosts: SshHosts, run: subprocess.Popen[str], *ranks: int) -> str:
    """Let it end well; these ranks are left. Returns stderr."""
    (hosts.directory / "go").touch()
    output, errors = run.communicate(timeout=DEADLINE)
    assert run.returncode == 0, errors
    lines = sorted(line.rpartition(" ")[0] for line in output.splitlines())
    assert lines == [f"[{rank}] True" for rank in ranks], errors
    return errors


def test_it_survives_the_death_of_a_rank_beside_it(behind_router: SshHosts) -> None:
    hosts = behind_router
    with under_way(hosts, "b,c:2", 3, "--keep-going") as run:
        status = hosts.status()
        witness = process(status, "witness")
        assert (witness["host"], status["groups"][0]["sequencer"]) == ("b", "witness")
        assert witness["pid"] in hosts.sessions("b")
        os.kill(process(status, 0)["pid"], signal.SIGKILL)
        until(lambda: agree(hosts, 1, 2, "witness"), "the group goes on", pause=0.3)
        after = hosts.status()
        assert process(after, "witness")["pid"] == witness["pid"]
        assert after["groups"][0]["sequencer"] == "witness"
        finish(hosts, run, 1, 2)


def test_the_ranks_go_on_without_it_if_its_host_is_lost(behind_router: SshHosts) -> None:
    hosts = behind_router
    with under_way(hosts, "b,c:3", 4, "--keep-going") as run:
        witness = process(hosts.status(), "witness")["pid"]
        os.kill(parent_of(witness), signal.SIGKILL)  # the agent
        until(lambda: agree(hosts, 1, 2, 3), "the group goes on", pause=0.3)
        assert hosts.status()["groups"][0]["sequencer"] in (1, 2, 3)
        errors = finish(hosts, run, 1, 2, 3)
    assert "host b is lost" in errors
    assert "the ranks go on, and one of them orders" in errors


def test_it_is_started_again_where_it_was(behind_router: SshHosts) -> None:
    hosts = behind_router
    with under_way(hosts, "b,c:2", 3, "--restart", "1") as run:
        hosts.orcalike("chaos", "kill", "witness")
        until(lambda: agree(hosts, 0, 1, 2, "witness"), "it is back", pause=0.3)
        witness = process(hosts.status(), "witness")
        assert (witness["host"], witness["restarts"]) == ("b", 1)
        finish(hosts, run, 0, 1, 2)


def test_ranks_on_a_host_that_others_do_not_reach(behind_router: SshHosts) -> None:
    result = behind_router.run("-H", "localhost:2,c", behind_router.write(COUNTS))
    assert (result.returncode, result.stdout) == (69, "")
    assert "host c cannot reach this host at 10.77.0.1 (ranks 0 to 1): " in result.stderr
    assert "--interface NAME or NETWORK, or --advertise localhost=ADDRESS" in result.stderr
    options = ("--advertise", "localhost=fd77::1", "--advertise", "c=fd77::3")
    result = behind_router.run("-H", "localhost:2,c", *options, behind_router.write(COUNTS))
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["[0] 30", "[1] 30", "[2] 30"]
    assert behind_router.rest() == []
