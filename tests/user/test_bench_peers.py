"""Orcalike beside its peers: each peer that can be measured gives its rows, each other one a line."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from orcalike.bench.peers import catalogue
from tests.lib.warm import python

WHAT = [("write that waits", 3), ("write that waits", 1), ("writes, no wait", 3), ("read", 3)]
NO_PROGRAMS = {"PATH": "/nowhere"}


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`orcalike.bench.peers`, to its end."""
    return python("-m", "orcalike.bench.peers", *arguments, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, object]]]:
    """What a short run prints, and the rows that it writes. There is no Java where it runs."""
    file = tmp_path_factory.mktemp("peers") / "peers.json"
    ended = run("--quick", "--only", "manager,jgroups", "--json", file, **NO_PROGRAMS)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, json.loads(file.read_text())["rows"]


def test_a_peer_gives_each_row(result: tuple[str, list[dict[str, object]]]) -> None:
    _, rows = result
    assert [(row["what"], row["members"]) for row in rows] == WHAT
    assert {row["beside"] for row in rows} == {"Manager"}
    for row in rows:
        samples = row["samples"]
        assert isinstance(samples, dict)
        assert all(sample > 0 for side in ("ours", "theirs") for sample in samples[side]), row


def test_a_ratio_says_how_many_times_faster_orcalike_is(
    result: tuple[str, list[dict[str, object]]],
) -> None:
    for row in result[1]:
        samples, ratio = row["samples"], row["ratio"]
        assert isinstance(samples, dict)
        assert isinstance(ratio, dict)
        rounds = zip(samples["ours"], samples["theirs"], strict=True)
        times = [our / their if row["unit"] == "/s" else their / our for our, their in rounds]
        assert min(times) <= ratio["median"] <= max(times), row


def test_what_is_not_installed_is_skipped_with_one_line(
    result: tuple[str, list[dict[str, object]]],
) -> None:
    said = [line for line in result[0].splitlines() if line.startswith("skipped")]
    assert said == ["skipped jgroups: no java: install a Java development kit, 17 or newer"]


def test_a_package_that_cannot_be_imported_is_what_is_lacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no_such_package").mkdir()  # as Ray leaves one of its name behind
    monkeypatch.syspath_prepend(tmp_path)
    assert catalogue.installed("json")() is None
    lacks = catalogue.installed("json", "no_such_package")()
    assert lacks == "not installed (make bench-peers installs what it can)"


def test_a_peer_that_does_not_exist_is_an_error_with_those_that_do() -> None:
    ended = run("--only", "manger")
    assert ended.returncode == 2
    assert "no peer 'manger'; there are manager, redis, ray," in ended.stderr
