"""The figures in README.md and docs/performance.md are those of the results that are committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from orcalike.bench.bars import Bar
from orcalike.bench.harness import BenchError
from orcalike.bench.readme import PHRASES, PLACES, ahead, changes, main, short
from orcalike.bench.results import read_json, write_json
from orcalike.bench.rows import compare

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "bench"


def test_the_figures_are_what_the_command_makes() -> None:
    for file, text in changes(RESULTS, ROOT).items():
        assert file.read_text(encoding="utf-8") == text, (
            f"{file.name} differs: python -m orcalike.bench.readme docs/bench"
        )


def test_each_phrase_has_its_row() -> None:
    _, rows = read_json(RESULTS / "results.json")
    assert PHRASES.keys() <= {row.what for row in rows}


def test_the_size_of_three_is_said() -> None:
    rows = [
        compare("write that waits, thread", members, "us", [30.0 + members], "C", [10.0], Bar(9))
        for members in (1, 3, 4)
    ]
    assert "| 33 µs | 10 µs, a ping-pong in C" in short("here", rows)


def test_small_figures_have_a_digit_more() -> None:
    rows = [compare("write that waits, RING", 3, "us", [2.24], "C", [21.3], Bar(9))]
    assert "| 2.2 µs | 21 µs, a ping-pong in C over Unix sockets | 0.11 |" in short("here", rows)


def test_a_document_without_a_place_is_refused() -> None:
    with pytest.raises(BenchError, match="no place for figures"):
        PLACES[0].replaced("nothing", "figures")


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_json([compare("import orcalike", 1, "ms", [2.0], "bare", [1.0])], Path("results.json"))
    write_json([compare("read", 3, "ns", [2.0], "Redis", [4.0])], Path("peers.json"))
    assert main(["."]) == 1
    assert "start it at the top of the repository" in capsys.readouterr().err
    Path("docs").mkdir()
    for name in {place.document for place in PLACES}:
        regions = [place.region for place in PLACES if place.document == name]
        Path(name).write_text(
            "".join(f"<!-- {it} -->\nold\n<!-- end of {it} -->\n" for it in regions)
        )
    assert main(["."]) == 0
    assert "| `import orcalike` | 2.0 ms | 1.0 ms, the bare interpreter | 2.0 |" in (
        Path("README.md").read_text()
    )
    Path("peers.json").write_text("no results")
    assert main(["."]) == 1
    assert "peers.json has no results" in capsys.readouterr().err


def test_peers_have_a_line_each() -> None:
    rows = [
        compare("read", 3, "ns", [4.0], "Redis", [2.0]),
        compare("write", 1, "us", [9.0], "Ray", [3.0]),
    ]
    lines = ahead("here", rows).splitlines()
    assert lines[0] == "| beside | read, 3 members | write, 1 member |"
    assert lines[2:4] == ["| Redis | 2 |  |", "| Ray |  | 3 |"]
