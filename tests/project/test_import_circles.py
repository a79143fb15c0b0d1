"""No module needs itself by way of others, neither when it runs nor in what its types name.

It goes by the text of all four kinds of files: what a function imports counts, what only type checkers
read, and what a `.pxd` cimports. A name that is looked up when it is first used (`lazy_names`) is no
import. A package counts where something of its own `__init__` is named, not where one of its modules is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"orcalike": "orcalike"} | {
    folder: f"orcalike.{folder}" for folder in ("runtime", "transport", "bench", "examples")
}
"""What each folder's modules are imported as."""

Source = tuple[str, str, str]
"""A module's name, the suffix of a file of it, and the text."""

_CYTHON_FROM = re.compile(
    r"^[ \t]*from[ \t]+([\w.]+)[ \t]+c?import[ \t]+(\([^)]*\)|[^#\n]*)", re.MULTILINE
)
_CYTHON_IMPORT = re.compile(r"^[ \t]*c?import[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*)", re.MULTILINE)
_TEXT = re.compile(r'"""(?s:.*?)"""|#.*')


def sources() -> Iterator[Source]:
    """All files of the packages; the links inside orcalike/ lead to the other folders."""
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".pyi", ".pyx", ".pxd"):
                parts = path.relative_to(ROOT / folder).with_suffix("").parts
                own = parts[:-1] if parts[-1] == "__init__" else parts
                yield ".".join((package, *own)), path.suffix, path.read_text(encoding="utf-8")


def named(suffix: str, text: str) -> Iterator[tuple[str, str]]:
    """What a file imports, as (module, name in it); the name is empty if the module is meant."""
    if suffix in (".pyx", ".pxd"):
        code = _TEXT.sub("", text)
        for module, names in _CYTHON_FROM.findall(code):
            yield from (
                (module, each.split()[0])
                for each in names.strip("() \n").split(",")
                if each.strip()
            )
        for modules in _CYTHON_IMPORT.findall(code):
            yield from ((module.strip(), "") for module in modules.split(","))
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def graph(files: list[Source]) -> dict[str, set[str]]:
    """The modules that each module needs, of those whose files these are."""
    found: dict[str, set[str]] = {module: set() for module, _, _ in files}
    for module, suffix, text in files:
        for source, name in named(suffix, text):
            needed = f"{source}.{name}" if f"{source}.{name}" in found else source
            if needed in found and needed != module:
                found[module].add(needed)
    return found


def circle(needs: dict[str, set[str]]) -> list[str]:
    """Modules each of which needs the next, and the last is the first; empty if there is no circle."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return [*reversed(error.args[1])]
    return []


def test_no_module_needs_itself_by_way_of_others() -> None:
    needs = graph([*sources()])
    assert {"orcalike.transport.view", "orcalike.runtime.task"} <= needs["orcalike.runtime.call"]
    assert circle(needs) == []


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".py", "def f():\n    from a import top"),
        (".py", "if TYPE_CHECKING:\n    import a.top"),
        (".pyi", "from a.top import Top\nclass Low:\n    top: Top"),
        (".pyx", "from a cimport (  # one,\n    top as highest,\n)"),
        (".pxd", "cimport libc.stdint, a.top"),
    ],
)
def test_a_planted_circle_is_found(suffix: str, text: str) -> None:
    files = [
        ("a", ".py", "from a.middle import M"),
        ("a.top", ".pyx", '"""\nfrom a import low\n"""\nfrom a cimport middle'),
        ("a.middle", ".py", "from a import low"),
        ("a.low", ".py", "import a.low, os"),
    ]
    assert circle(graph(files)) == []
    found = circle(graph([*files, ("a.low", suffix, text)]))
    assert {*pairwise(found)} == {
        ("a.low", "a.top"),
        ("a.top", "a.middle"),
        ("a.middle", "a.low"),
    }
