"""The papers' experiments run, and write what they measured. How fast anything is, no test asks."""

from __future__ import annotations

import csv
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orcalike.bench.papers import plot
from orcalike.bench.papers.__main__ import EXPERIMENTS, LEFT_OUT
from orcalike.bench.papers.layers import Meter
from orcalike.bench.papers.shapes import Curve, Shape, write_csv
from tests.lib.warm import python

ASKED = ("A53", "A57", "H93")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """`orcalike.bench.papers`, to its end."""
    return python("-m", "orcalike.bench.papers", "--quick", *arguments)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What a short run of some experiments prints, and where it wrote."""
    folder = tmp_path_factory.mktemp("papers") / "made"
    ended = run("--only", ",".join([*ASKED, "A55"]), "--out", folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, folder


def test_each_experiment_is_printed_and_written(result: tuple[str, Path]) -> None:
    printed, folder = result
    heads = [line.split()[0] for line in printed.splitlines() if line[:1] in ("A", "H")]
    assert heads == [*ASKED, "A55"]
    written = printed.split("written: ")[1].splitlines()[0].split()
    assert {Path(file) for file in written} == set(folder.iterdir())
    suffixes = (".csv", ".svg") if plot.can_plot() else (".csv",)
    expected = {f"{number}{suffix}" for number in ASKED for suffix in suffixes}
    assert {file.name for file in folder.iterdir()} == expected | {"papers.json"}
    assert ("no plots: matplotlib" in printed) != plot.can_plot()


def test_each_point_is_a_figure(result: tuple[str, Path]) -> None:
    shapes: list[dict[str, Any]] = json.loads((result[1] / "papers.json").read_text())["shapes"]
    assert [shape["number"] for shape in shapes] == list(ASKED)
    for shape in shapes:
        for curve in shape["today"] + shape["beside"] + shape["original"]:
            assert curve["points"], (shape["number"], curve["name"])
            for point in curve["points"]:
                assert 0 < point["low"] <= point["y"] <= point["high"] < math.inf, curve


def test_the_table_for_programs_has_each_point(result: tuple[str, Path]) -> None:
    with (result[1] / "A53.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["side"] for row in rows} == {"today", "beside", "original"}
    sends = [row for row in rows if row["curve"] == "send to a group of 2"]
    assert [float(row["x"]) for row in sends] == [0, 1024]
    assert float(sends[0]["shape"]) == 1


def test_what_is_left_out_says_why(result: tuple[str, Path]) -> None:
    assert f"A55  left out, {LEFT_OUT['A55']}" in result[0]


def test_an_unknown_experiment_is_refused_with_those_there_are() -> None:
    ended = run("--only", "A51,B12")
    assert ended.returncode == 2
    assert "no experiment 'B12'; there are " + ", ".join(EXPERIMENTS) in ended.stderr


def test_time_that_is_over_ends_it_with_a_line(tmp_path: Path) -> None:
    ended = run("--only", "A60", "--time-limit", "1", "--out", tmp_path)
    # A program that ran when the time was over says that it is being stopped.
    *stopping, last = ended.stderr.splitlines()
    assert (ended.returncode, last) == (1, "papers: not done after 1 s")
    assert set(stopping) <= {"stopping … (SIGTERM again to kill)"}


# Shapes.


def test_a_shape_is_a_curve_by_its_first_point() -> None:
    curve = Curve.of("it", {2: [3.0, 1.0, 2.0], 4: [8.0]}, 10)
    assert [(point.x, point.y, point.low, point.high) for point in curve.points] == [
        (2, 20, 15, 25),
        (4, 80, 80, 80),
    ]
    assert Shape("X1", "", "", "", (curve,)).relative(curve) == [1, 4]
    assert Shape("X1", "", "", "", (curve,), categories=("a",)).relative(curve) == [0.2, 0.8]
    line = Curve.exactly("", {2: 20, 4: 80}).fitted("line", (2, 10))
    assert [point.y for point in line.points] == pytest.approx([20, 260])


@pytest.mark.parametrize("categories", [(), ("one", "two")])
def test_a_shape_is_drawn(tmp_path: Path, categories: tuple[str, ...]) -> None:
    pytest.importorskip("matplotlib")
    curve = Curve.of("measured", {0: [1.0, 2.0], 1: [4.0, 5.0]})
    original = Curve.exactly("of old", {0: 2.7, 1: 2.8})
    shape = Shape("X1", "title", "x", "us", (curve,), (), (original,), "ms", categories=categories)
    plot.plot(shape, tmp_path / "it.svg")
    write_csv(shape, tmp_path / "it.csv")
    text = (tmp_path / "it.svg").read_text()
    assert text.count("<svg") == 1


def test_a_layer_is_not_billed_for_those_that_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 100))
    monkeypatch.setattr("orcalike.bench.papers.layers.perf_counter_ns", lambda: next(clock))
    meter = Meter()
    meter.enter("TOTAL")
    meter.enter("PROBE")
    meter.enter("COM")
    for _ in range(3):
        meter.leave()
    # Each was running for 100 ns between two crossings; two of them are PROBE's 200 ns.
    assert meter.spent == {"TOTAL": 200, "PROBE": 200, "COM": 100}
    assert meter.corrected(({}, {})) == {"TOTAL": 0, "COM": 0}
