"""Groups of real processes whose order is in shared memory: members are killed while all write."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.programs import Program, Programs

MEMBERS = 3
KILLS = 3


@pytest.fixture
def place() -> Iterator[str]:
    """Where they meet: sockets need a short path."""
    with tempfile.TemporaryDirectory(prefix="o", dir="/tmp") as folder:
        yield f"unix:{folder}/place"


def acknowledged(directory: Path) -> set[tuple[str, int]]:
    """The writes that members saw done; a line may be cut short where one was killed."""
    return {
        (file.name.partition(".")[2], int(line))
        for file in directory.glob("acknowledged.*")
        for line in file.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    }


def seen_by(program: Program) -> list[list[object]]:
    """What it prints in the end."""
    while "seen" not in (fact := program.next_fact()):
        pass
    found: list[list[object]] = fact["seen"]
    return found


def test_members_are_killed_and_others_join_while_all_write(
    programs: Programs, tmp_path: Path, place: str
) -> None:
    rng = random.Random(1)
    living: list[Program] = []
    for number in range(MEMBERS + KILLS):
        if len(living) == MEMBERS:
            killed = living.pop(rng.randrange(MEMBERS))
            killed.kill()
        program = programs.start("over_ring.py", f"m{number}", place, MEMBERS=str(MEMBERS))
        assert program.next_fact() == {"joined": f"m{number}"}
        living.append(program)
    programs.call("stop")
    logs = [each.next_fact()["log"] for each in living]
    assert [each.end() for each in living] == [0] * MEMBERS
    assert len(logs) == MEMBERS
    assert logs[0] == logs[1] == logs[2]
    found = Counter((writer, number) for writer, number in logs[0])
    assert set(found.values()) == {1}, "each once"
    done = acknowledged(tmp_path)
    assert not done - found.keys(), "acknowledged, and lost"
    assert len(done) > 50
    last: dict[str, int] = {}
    for writer, number in logs[0]:
        assert number == last.get(writer, -1) + 1, f"{writer}: {number} out of its order"
        last[writer] = number


def test_a_read_sees_what_another_member_has_written_at_once(
    programs: Programs, tmp_path: Path, place: str
) -> None:
    """Linearizable on one host: a write that has returned anywhere is seen by each read that begins then."""
    (tmp_path / "flags").write_bytes(bytes(2))
    reader, writer = (programs.start("looker.py", role, place) for role in ("reader", "writer"))
    assert reader.next_fact() == {"seen": list(range(1, 51))}
    assert [reader.end(), writer.end()] == [0, 0]


def core_time(pid: int) -> float:
    """What a process has taken so far, s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_member_whose_group_is_blocked_takes_hardly_any_core_time(
    programs: Programs, place: str
) -> None:
    """Nor does one that waits for the next view, while others need the cores to agree on it."""
    programs.environment["ORCALIKE_DETECTION"] = "0.2"
    programs.environment["STACK"] = "PACK:XFER:RING(slots=64):MBRSHIP:COM:unix"
    members: list[Program] = []
    for _ in range(MEMBERS):
        members.append(programs.start("now_and_then.py", place))
        pid = members[-1].next_fact()["pid"]
    last, *others = reversed(members)
    for other in others:
        other.pause()  # they hold it up when the order is full
    assert last.next_fact() == {"blocked": True}
    before = core_time(pid)
    time.sleep(1)
    assert core_time(pid) - before < 0.3


@pytest.mark.parametrize("pack", ["PACK", "PACK(fragment=8388608)"], ids=["cut by PACK", "by RING"])
def test_a_member_is_killed_while_it_writes_large_values_and_others_small_ones(
    programs: Programs, place: str, pack: str
) -> None:
    options = {"STACK": f"{pack}:XFER:RING:MBRSHIP:COM:unix", "MEMBERS": "3"}
    small = [programs.start("large_over_ring.py", role, place, **options) for role in ("s", "t")]
    large = [programs.start("large_over_ring.py", "large", place, **options) for _ in range(2)]
    for each in (*small, *large):
        assert "joined" in each.next_fact()
    for each in large:
        assert each.next_fact() == {"written": 5_000_000}
    large[0].kill()  # it goes on at once, so most of the time a value is half written
    assert large[1].next_fact() == {"written": 5_000_000}
    programs.call("stop")
    survivors = (*small, large[1])
    seen = [seen_by(each) for each in survivors]
    assert [each.end() for each in survivors] == [0, 0, 0]
    assert seen[0] == seen[1] == seen[2]
    written = [value for value in seen[0] if value[0] in ("L", "m")]
    assert len(written) > 10
    assert all(value[1:] == [5_000_000, 5_000_000] for value in written), "a value is whole"
    assert sum(value[0] == "m" for value in written) >= 3, "what was acknowledged is there"
