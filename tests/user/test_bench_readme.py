"""The figures in README.md and docs/performance.md are those of the results that are committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from orcalike.bench.bars import Bar
from orcalike.bench.harness import BenchError
from orcalike.bench.readme import PHRASES, changes, main, replaced, short
from orcalike.bench.results import read_json, write_json
from orcalike.bench.rows import compare

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "bench" / "results.json"


def test_the_figures_are_what_the_command_makes() -> None:
    for file, text in changes(RESULTS, ROOT).items():
        assert file.read_text(encoding="utf-8") == text, (
            f"{file.name} differs: python -m orcalike.bench.readme docs/bench/results.json"
        )


def test_each_phrase_has_its_row() -> None:
    _, rows = read_json(RESULTS)
    assert PHRASES.keys() <= {row.what for row in rows}


def test_the_size_of_three_is_told() -> None:
    rows = [
        compare("write that waits, thread", members, "us", [30.0 + members], "C", [10.0], Bar(9))
        for members in (1, 3, 4)
    ]
    assert "| 33 µs | 10 µs, a ping-pong in C" in short("here", rows)


def test_a_document_without_a_place_is_refused() -> None:
    with pytest.raises(BenchError, match="no place for figures"):
        replaced("nothing", "figures")


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_json([compare("import orcalike", 1, "ms", [2.0], "bare", [1.0])], Path("it.json"))
    assert main(["it.json"]) == 1
    assert "start it at the top of the repository" in capsys.readouterr().err
    Path("docs").mkdir()
    for name in ("README.md", "docs/performance.md"):
        Path(name).write_text("a\n<!-- figures -->\nold\n<!-- end of figures -->\nb\n")
    assert main(["it.json"]) == 0
    assert "| `import orcalike` | 2 ms | 1 ms, the bare interpreter | 2.0 |" in (
        Path("README.md").read_text()
    )
    assert main(["README.md"]) == 1
    assert "README.md has no results" in capsys.readouterr().err
