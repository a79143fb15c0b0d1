"""What a row's verdict is, by its samples and its bar."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from orcalike.bench.bars import Bar
from orcalike.bench.results import read_json, write_csv, write_json
from orcalike.bench.table import compare

ONES = [1.0] * 8


@pytest.mark.parametrize(
    ("ours", "bar", "verdict"),
    [
        ([2.0] * 8, None, ""),
        ([2.0] * 8, Bar(2.5), "met"),
        ([2.0] * 8, Bar(2.5, 2.2), "aim"),
        ([2.0] * 8, Bar(1.5, 1.1), "short"),
        ([2.0] * 5 + [1.0] * 3, Bar(1.5), "near"),
        ([1.0] * 5 + [2.0] * 3, Bar(1.5, 1.2), "aim"),
        ([0.5] * 8, Bar(0.4, 0.6, at_least=True), "met"),
        ([0.5] * 8, Bar(0.6, at_least=True), "short"),
        ([0.5] * 5 + [0.7] * 3, Bar(0.6, at_least=True), "near"),
        ([9.0] * 8, Bar(extra=9, extra_aim=8), "aim"),
        ([9.0] * 8, Bar(extra=7), "short"),
        ([9.0] * 8, Bar(10, 10, extra=9, extra_aim=7), "met"),
        ([9.0] * 8, Bar(most=10, most_aim=1), "met"),
        ([9.0] * 8, Bar(most=8), "short"),
    ],
)
def test_a_verdict_follows_from_three_quarters_of_the_rounds(
    ours: list[float], bar: Bar | None, verdict: str
) -> None:
    row = compare("it", 3, "us", ours, "ones", ONES, bar)
    assert row.verdict == verdict
    assert row.falls_short == (verdict == "short")


def test_a_bar_in_words() -> None:
    bar = Bar(2.5, 1.9, extra=25, extra_aim=15)
    assert bar.words("ns") == "2.5x, +25 ns"
    assert bar.words("ns", aim=True) == "1.9x, +15 ns"
    assert Bar(0.4, at_least=True).words("/s") == "0.4x or more"
    assert Bar(most=400).words("us") == "400 us"
    assert Bar(most=400).words("us", aim=True) == ""


def test_the_table_as_csv(tmp_path: Path) -> None:
    rows = [
        compare("one", 1, "us", [3.0], "other", [2.0], Bar(2, 1)),
        compare("two", 3, "/s", [3.0], "other", [2.0], rates=[5.0]),
    ]
    write_csv(rows, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        one, two = csv.DictReader(file)
    assert one["ratio_median"] == "1.5"
    assert (one["must"], one["aim"], one["verdict"]) == ("2x", "1x", "met")
    assert one["writes_per_second"] == ""
    assert (two["writes_per_second"], two["must"], two["verdict"]) == ("5", "", "")


def test_rows_in_a_file_are_the_same_when_they_are_read(tmp_path: Path) -> None:
    rows = [
        compare("one", 1, "us", [3.0, 4.0], "other", [2.0, 1.0], Bar(2, 1, extra=3)),
        compare("two", 3, "/s", [3.0], "other", [2.0], rates=[5.0]),
    ]
    write_json(rows, tmp_path / "rows.json")
    machine, read = read_json(tmp_path / "rows.json")
    assert machine["cores"] > 0
    assert read == rows
