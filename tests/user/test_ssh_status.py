"""`orcalike status` of a run over hosts with a real sshd, before one of them is cut off and afterwards."""

from __future__ import annotations

import re
from typing import Any

from tests.lib.processes import DEADLINE, until
from tests.lib.ssh_hosts import STAYS, SshHosts, lines_until

LOST = "host c is lost: nothing has come from it for 10 s"


def processes(run: Any) -> dict[int | str, Any]:
    """Those of a run, by rank."""
    return {each["role"]: each for each in run["processes"]}


def members(run: Any) -> dict[int | str, Any]:
    """Those of its group, by rank."""
    (group,) = run["groups"]
    return {each["role"]: each for each in group["members"]}


def is_there(run: Any) -> bool:
    """Whether rank 2 answers."""
    return bool(members(run).get(2, {"answers": False})["answers"])


def table(text: str) -> dict[str, list[str]]:
    """The rows of the table, by rank: words until the first of two spaces."""
    rows = [re.split(r"  +", line) for line in text.splitlines()[3:]]
    return {row[0]: row[1:] for row in rows}


def test_status_over_hosts_of_which_one_is_cut_off(two: SshHosts) -> None:
    go = two.directory / "go"
    with two.started("-H", "b:2,c", "--keep-going", two.write(STAYS), str(go)) as run:
        assert run.stdout is not None
        assert sorted(run.stdout.readline() for _ in range(3)) == [
            f"[{n}] ready\n" for n in range(3)
        ]
        all_known(two)
        two.hosts["c"].cut()
        until(lambda: not is_there(two.status()), "the host is silent", pause=0.3)
        until(
            lambda: [states(two)[rank] for rank in "01"] == ["member"] * 2,
            "the others answer",
            pause=0.3,
        )
        assert states(two)["2"] in ("no answer", f"left ({LOST})")
        assert two.orcalike("objects").count("Counter") == 1
        assert run.stderr is not None
        lost = lines_until(run.stderr, LOST)
        until(lambda: processes(two.status())[2]["state"] == "left", "the host is lost", pause=0.3)
        after_the_loss(two)
        go.touch()
        output, errors = run.communicate(timeout=DEADLINE)
        errors = lost + errors
    assert (run.returncode, sorted(output.splitlines())) == (0, ["[0] True 2", "[1] True 2"]), (
        errors
    )
    assert ["rank 2 (host c, pid ", ") was lost"][0] in errors
    assert LOST in errors
    two.hosts["c"].mend()
    until(lambda: two.rest() == [], "the end of all", pause=0.1)


def states(two: SshHosts) -> dict[str, str]:
    """What the table has for each process."""
    return {rank: row[2] for rank, row in table(two.orcalike("status")).items()}


def answered(two: SshHosts) -> Any:
    """The status when all that run have answered in time, and their hosts have said figures."""

    def complete() -> bool:
        run.clear()
        run.update(two.status())
        running = [each for each in run["processes"] if each["state"] == "running"]
        answers = all(each["answers"] for each in members(run).values())
        return answers and all(each["rss"] for each in running)

    run: dict[str, Any] = {}
    until(complete, "an answer of all", pause=0.3)
    return run


def all_known(two: SshHosts) -> None:
    """Each process is shown with its host and its figures."""
    run = answered(two)
    found = processes(run)
    here = found["witness"]["host"]
    assert {role: each["host"] for role, each in found.items()} == {
        0: "b",
        1: "b",
        2: "c",
        "witness": here,
    }
    assert run["hosts"] == sorted(["b", "c", here])
    for name, roles in {"b": (0, 1), "c": (2,), "a": ("witness",)}.items():
        assert {found[role]["pid"] for role in roles} <= set(two.sessions(name))
    assert all(each["cpu_seconds"] >= 0 < each["age_seconds"] for each in found.values())
    assert {each["state"] for each in members(run).values()} == {"member"}
    assert all(each["size"] == 3 for each in members(run).values())
    text = two.orcalike("status")
    assert re.match(r"job \w+ · \S+/prog\.py · up \d:\d\d:\d\d · 3 ranks on 2 hosts\n", text)
    assert "primary · sequencer: witness" in text
    until(lambda: set(states(two).values()) == {"member"}, "all answer in time", pause=0.3)
    assert states(two).keys() == {"0", "1", "2", "witness"}


def after_the_loss(two: SshHosts) -> None:
    """The lost rank is shown with the reason, and the others go on without it."""
    run = answered(two)
    lost = processes(run)[2]
    assert (lost["host"], lost["lost"], lost["exit_code"], lost["rss"]) == ("c", LOST, None, None)
    assert "c" not in run["hosts"]
    assert {role: each["size"] for role, each in members(run).items()} == {0: 2, 1: 2, "witness": 2}
    assert run["groups"][0]["primary"] is True
    text = two.orcalike("status")
    assert "3 ranks on 2 hosts\n" in text
    assert table(text)["2"][:3] == ["c", str(lost["pid"]), f"left ({LOST})"]
