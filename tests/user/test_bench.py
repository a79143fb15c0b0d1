"""The measurements run, and give every row. How fast anything is, no test asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from orcalike.bench import invocations
from tests.lib.warm import python

SIZES = (1, 3)
ONCE = {
    "read, one attribute",
    "read, body of 280 ns",
    "undecorated method, attribute",
    "list as an argument, written and read",
    "dict as an argument, written and read",
}
EACH = {
    "write that waits, thread",
    "write that waits, coroutine",
    "write, no wait, (int)",
    "write, no wait, (str, int)",
    "write, no wait, (list)",
    "write, no wait, (dict)",
    "write, no wait, (int), uvloop",
    "rate of (str, int)",
    "rate on uvloop",
}


def run(*arguments: str | Path, compiler: str = "cc") -> subprocess.CompletedProcess[str]:
    """`orcalike.bench.invocations`, to its end."""
    return python(
        "-m", "orcalike.bench.invocations", *arguments, env={**os.environ, "CC": compiler}
    )


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, object]]]:
    """What a short run prints, and the rows that it writes."""
    file = tmp_path_factory.mktemp("bench") / "result.json"
    ended = run("--quick", "--members", *map(str, SIZES), "--json", file)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, json.loads(file.read_text())["rows"]


def test_each_size_of_group_gives_each_row(
    result: tuple[str, list[dict[str, object]]],
) -> None:
    printed, rows = result
    expected = {(what, 1) for what in ONCE}
    expected |= {(what, members) for what in EACH for members in SIZES}
    assert {(row["what"], row["members"]) for row in rows} == expected
    assert len(printed.splitlines()) == len(expected) + 2


def test_all_sizes_of_group_are_measured_by_default() -> None:
    assert invocations.parse([]).members == [1, 2, 3, 4]


def test_a_limit_is_never_nothing(result: tuple[str, list[dict[str, object]]]) -> None:
    for row in result[1]:
        samples = row["samples"]
        assert isinstance(samples, dict)
        assert all(sample > 0 for side in samples.values() for sample in side), row


def test_time_that_is_over_ends_it_with_a_line() -> None:
    ended = run("--time-limit", "1")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "invocations: not done after 1 s"


def test_without_a_compiler_it_says_what_to_do() -> None:
    ended = run("--quick", compiler="no-such-compiler")
    assert ended.returncode == 1
    assert ended.stderr == "invocations: no C compiler: install one, or name it in CC\n"


@pytest.mark.parametrize(
    "module",
    ["__main__", "invocations", "papers.__main__", "peers.__main__", "states", "startup"],
)
def test_without_uvloop_it_says_what_to_install(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    monkeypatch.chdir(tmp_path)
    assert import_module(f"orcalike.bench.{module}").main(["--quick"]) == 1
    said = capsys.readouterr().err
    assert said.endswith(": it needs the package uvloop: pip install 'orcalike[bench]'\n")
    assert said.count("\n") == 1
