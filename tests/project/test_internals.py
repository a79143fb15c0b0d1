"""docs/internals and the sources fit: each code that is cited is explained, each file named is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from orcalike.session.failpoints import STEPS
from orcalike.simulator.fault_matrix import ROLES

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "internals"
DECISIONS = sorted(PAGES.glob("decisions/ADR-*.md"))
FOLDERS = ("orcalike", "runtime", "transport", "tests", "bench")
SUFFIXES = {".py", ".pyi", ".pyx", ".pxd"}

CODE = re.compile(r"(?<![\w\"'#\\/+:-])(?:(Horus )?([ADEFGHIJLRSVW]\d{1,2})|ADR-\d+)(?![\w-])")
"""A letter and a number, as prose has it; "Horus H13" is a feature, H13 is a decision."""

SPAN = re.compile(r"\b([A-Z])(\d{1,2}) to \1(\d{1,2})\b")
"""A range: those between are cited as well."""

NO_CITATIONS = {
    "tests/project/test_internals.py",  # plants wrong ones
    "tests/unit/session/test_failpoints.py",  # names steps that there are not
}

HEADINGS = ["Context", "Decision", "Consequences", "Where"]
"""Of each decision."""

ROLE_NAMES = {"S": "sequencer", "P": "sender", "A": "member", "C": "leader", "J": "joiner"}


def page(name: str) -> str:
    return (PAGES / name).read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """The cells of all tables' rows."""
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith("| ---")
    ]


def firsts(text: str) -> list[str]:
    """What the first cells of a page's tables have: a code each, or several with commas."""
    return [code.strip(" |") for row in rows(text) for code in row[0].split(",")]


def codes_of_decision(path: Path) -> tuple[str, ...]:
    """The names of a decision, which its heading has: `# ADR-1 (H1): which ...`, `# ADR-14: the ...`."""
    heading = re.match(r"# (ADR-(\d+))(?: \((H\2)\))?: .+\n", path.read_text(encoding="utf-8"))
    assert heading is not None, path.name
    return tuple(filter(None, (heading[1], heading[3])))


@cache
def explained() -> frozenset[str]:
    """The codes that a heading or a row explains; those of papers with the paper's name for H."""
    known = {
        code
        for name in ("papers.md", "invariants.md", "failpoints.md")
        for code in firsts(page(name))
    }
    known -= {code for code in known if code in {"H10", "H11", "H12", "H13"}}
    known |= {f"Horus {code}" for code in firsts(page("papers.md")) if code.startswith("H")}
    known |= {code for path in DECISIONS for code in codes_of_decision(path)}
    known |= {code for code in firsts(page("security.md")) if code.startswith("S")}
    known |= set(firsts((ROOT / "docs" / "testing.md").read_text(encoding="utf-8")))
    return frozenset(known)


@cache
def sources() -> dict[str, str]:
    """The texts by path; links inside orcalike/ lead to folders that are here themselves."""
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in SUFFIXES and path.is_file() and not _is_linked(path)
    }


def _is_linked(path: Path) -> bool:
    return any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(ROOT))


def citations(text: str) -> Iterator[str]:
    """All codes that a text cites, those within a range too."""
    for match in CODE.finditer(text):
        yield match[0]
    for letter, first, last in SPAN.findall(text):
        for number in range(int(first) + 1, int(last)):
            yield f"{letter}{number:0{len(first)}}"


def test_each_code_that_is_cited_is_explained() -> None:
    unknown = [
        f"{path}: {code}"
        for path, text in sources().items()
        if path not in NO_CITATIONS
        for code in citations(text)
        if code not in explained()
    ]
    assert unknown == []


@pytest.mark.parametrize(
    "text",
    [
        "(H99)",
        "I99, promise 1",
        "(A01, D26)",
        "H98 a",
        "Horus H98",
        "as in W13.",
        "(G99)",
        "S17",
        "A64 to A69",
        "ADR-99",
    ],
)
def test_a_code_that_is_not_explained_is_found(text: str) -> None:
    assert set(citations(text)) - explained()


@pytest.mark.parametrize(
    "text",
    [
        "(H13)",
        "Horus H13",
        "(H12 a)",
        "H02 to H04",
        "I1 to I34",
        "A05, A14",
        "G33: members",
        "(S7)",
        "(ADR-1, ADR-16)",
    ],
)
def test_a_code_that_is_explained_is_let_through(text: str) -> None:
    found = set(citations(text))
    assert found
    assert found <= explained()


def test_no_book_outside_of_the_repository_is_cited() -> None:
    books = re.compile(r"\b(RELIABILITY|DESIGN|CLUSTERS|USERS|FEATURES|HOUSE)\b(\.md|, | \d| H\d)")
    cited = [
        path for path, text in sources().items() if path not in NO_CITATIONS and books.search(text)
    ]
    assert cited == []


def test_all_features_of_the_papers_are_in_the_table() -> None:
    numbers = {"A": 67, "D": 25, "H": 97, "F": 33, "R": 30}
    listed = [row[0] for row in rows(page("papers.md")) if re.fullmatch(r"[A-Z]\d\d", row[0])]
    assert listed == [f"{key}{n:02}" for key, last in numbers.items() for n in range(1, last + 1)]


def test_a_feature_that_is_there_names_code_and_test() -> None:
    states = {"yes", "in part", "differs", "not yet", "left out"}
    for code, _, state, where, tests in (row for row in rows(page("papers.md")) if len(row) == 5):
        if code == "number":
            continue
        assert state in states, code
        if state == "yes":
            assert "`" in where, code
            assert "`tests/" in tests, code


def named(text: str) -> Iterator[tuple[str, str]]:
    """Files that a page names in its text, with the test, if any: (path, test)."""
    for path, test in re.findall(r"`([\w.]+(?:/[\w.]+)+/?)(?:::(\w+))?`", text):
        if path.split("/")[0] in {*FOLDERS, "docs", "examples"}:
            yield path, test


def missing(text: str) -> list[str]:
    """Files and tests that a text names, and that are not there."""
    wrong = []
    for path, test in named(text):
        file = ROOT / path
        if not file.exists() or (test and f"def {test}(" not in file.read_text(encoding="utf-8")):
            wrong.append(f"{path}::{test}" if test else path)
    return wrong


NAMING = [
    *sorted(PAGES.rglob("*.md")),
    ROOT / "docs" / "testing.md",
    *sorted(ROOT.glob("[CS]*.md")),
]


@pytest.mark.parametrize("path", NAMING, ids=lambda path: path.name)
def test_files_and_tests_that_a_page_names_are_there(path: Path) -> None:
    assert missing(path.read_text(encoding="utf-8")) == []


def test_a_file_and_a_test_that_are_not_there_are_found() -> None:
    test = "tests/unit/transport/test_view.py::test_nothing"
    text = f"`transport/stack.pyx`, `runtime/nothing.py`, `{test}`"
    assert missing(text) == ["runtime/nothing.py", test]


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_a_page_of_the_index_with_the_same_headings(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == HEADINGS
    assert re.search(r"^Status: (accepted|replaced by ADR-\d+)", text, re.MULTILINE)
    code, *other = codes_of_decision(path)
    number = code.removeprefix("ADR-")
    assert path.name.startswith(f"ADR-{number:0>2}-")
    assert f"| [{code}]({path.name}) | {other[0] if other else '-'} |" in page(
        "decisions/README.md"
    )


def test_failpoints_have_their_roles_and_modules() -> None:
    table = {row[0]: row[1:] for row in rows(page("failpoints.md")) if row[0] in STEPS}
    assert list(table) == list(STEPS)
    passed: dict[str, set[str]] = {step: set() for step in STEPS}
    for path in (ROOT / "transport").rglob("*.py*"):
        if path.suffix in {".py", ".pyx"}:
            for step in re.findall(r'\b[mM]ark\("(\w+)"\)', path.read_text(encoding="utf-8")):
                passed[step].add(path.relative_to(ROOT).as_posix())
    for step, (roles, modules) in table.items():
        assert set(roles.split(", ")) == {ROLE_NAMES[role] for role in ROLES[step]}, step
        assert set(re.findall(r"`(.+?)`", modules)) == passed[step], step


def test_the_glossary_says_each_word_once() -> None:
    words = [word for word in firsts(page("glossary.md")) if word != "word"]
    assert len(words) == len(set(words))


def test_the_files_that_enforce_bounds_are_there() -> None:
    """docs/bounds.md names each by the end of its path."""
    named = set(re.findall(r"`([\w/]+\.pyx?)", (ROOT / "docs" / "bounds.md").read_text("utf-8")))
    there = {
        path.relative_to(ROOT).as_posix()
        for folder in ("orcalike", "runtime", "transport")
        for path in (ROOT / folder).rglob("*.py*")
    }
    assert len(named) > 20
    assert {
        name for name in named if not any(f"/{each}".endswith(f"/{name}") for each in there)
    } == set()
