"""`python -m orcalike.bench` and `orcalike bench`: all rows are there. No test asks how fast."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
from pathlib import Path

import pytest

from orcalike.bench.bars import Bar
from orcalike.bench.table import compare
from tests.lib.warm import python

ROWS = {
    "unpinned": {"write that waits, unpinned"},
    "sequencer": {
        *(f"sequencer, packet of {size} bytes" for size in (16, 128, 1024, 4096, 8192)),
        "sequencer, 8192 bytes, not 16",
    },
    "resilience": {
        "write that waits, r = 1",
        "write that waits, r = 2",
        "write that waits, r = majority",
        "rate, no wait, r = 1",
    },
    "states": {"write that waits, core time", "write, no wait, core time"},
    "busy": {
        "seen by a busy worker, median",
        "seen by a busy worker, 99 %",
        "write that waits, of the others",
    },
    "startup": {"import orcalike", "orcalike run, empty program"},
    "memory": {"memory of a member", "memory, many writes later"},
    "idle": {
        f"idle, {kind}{what}"
        for kind in ("threads", "event loop")
        for what in (": wake-ups", ": of other threads", ", RING: wake-ups")
    },
}
if len(os.sched_getaffinity(0)) < 2:
    del ROWS["busy"]


def run(*arguments: str | Path, compiler: str = "cc") -> subprocess.CompletedProcess[str]:
    """`python -m`, to its end."""
    return python("-m", *arguments, env={**os.environ, "CC": compiler})


@pytest.mark.parametrize("part", ROWS)
def test_each_part_gives_its_rows(part: str, tmp_path: Path) -> None:
    files = (tmp_path / "rows.json", tmp_path / "rows.csv")
    ended = run("orcalike.bench", "--quick", "--only", part, "--json", files[0], "--csv", files[1])
    assert ended.returncode == 0, ended.stderr
    rows = json.loads(files[0].read_text())["rows"]
    expected = ROWS[part]
    assert sorted(row["what"] for row in rows) == sorted(expected)
    assert len(ended.stdout.splitlines()) == len(expected) + 2
    for row in rows:
        assert all(sample >= 0 for side in row["samples"].values() for sample in side), row
        assert row["theirs"]["median"] > 0, row
        assert math.isfinite(row["ratio"]["median"]), row
    with files[1].open() as file:
        assert [line["what"] for line in csv.DictReader(file)] == [row["what"] for row in rows]


def test_the_verb_does_without_a_compiler(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    ended = run(
        "orcalike", "bench", "--quick", "--only", "reads,waits", "--members", "2", "--json", file,
        compiler="no-such-compiler",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == (
        "orcalike: nothing beside C: no C compiler: install one, or name it in CC\n"
    )
    rows = json.loads(file.read_text())["rows"]
    assert {row["what"] for row in rows} == {
        "read, one attribute",
        "read, body of 280 ns",
        "undecorated method, attribute",
        "write that waits, coroutine",
        "dict as an argument, written and read",
        "list as an argument, written and read",
    }
    assert {row["members"] for row in rows} == {2}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["orcalike", "bench", "--only", "raeds"], "there is no part 'raeds': reads, waits, "),
        (["orcalike.bench", "--only", "raeds"], "there is no part 'raeds': reads, waits, "),
        (["orcalike", "bench", "--members", "0"], "0 is not in the range 1<=x<=32"),
        (["orcalike.bench", "--members", "0"], "a group has 1 to 32 members here"),
    ],
)
def test_a_wrong_command_line_says_why(command: list[str], said: str) -> None:
    ended = run(*command)
    assert ended.returncode == 2
    assert said in ended.stderr


def test_time_that_is_over_ends_it_with_a_line() -> None:
    ended = run("orcalike", "bench", "--only", "idle", "--timeout", "1s")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "orcalike: not done after 1 s"


def test_the_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `bench`")
    from orcalike.bench import plot

    rows = [
        compare("write that waits, thread", members, "us", [3.0], "C", [2.0], Bar(2, 1))
        for members in (1, 3)
    ]
    drawn = plot.draw(rows, tmp_path)
    assert [file.name for file in drawn] == ["bars.svg", "waits.svg"]
    assert all(file.stat().st_size for file in drawn)
