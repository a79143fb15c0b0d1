"""The house rules that no tool checks: arrows, names, sizes, and what is kept out."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import orcalike
import orcalike.errors
from tests.lib.words import BANS, Ban, prose

ROOT = Path(__file__).parents[2]
PACKAGES = ("orcalike", "runtime", "transport")
FOLDERS = (*PACKAGES, "examples", "bench", "tests")
PYTHON, CYTHON, C = (".py", ".pyi"), (".pyx", ".pxd"), (".c", ".h")
LINES_MAX = 600

#: What `orcalike/__init__.py` makes `join` of, and exports no more than that.
NOT_EXPORTED = {"Joining", "make_plan"}

#: Bytes from elsewhere become objects in `runtime.marshal` alone. These run text, none of it
#: from the network: the binder of arguments writes its own, the launcher runs the program.
RUNS_TEXT = {
    "runtime/arguments.py",
    "orcalike/launcher/bootstrap.py",
    "orcalike/declare/program_check.py",
}
NO_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "_pickle"}
NO_CALLS = {"eval", "exec", "__import__"}

#: System headers that the protocol core may use: they compute, and do no I/O.
CORE_HEADERS = {"Python.h", "<endian.h>", "<string.h>"}

_CYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+c?import\b|c?import[ \t]+([\w., \t]+))", re.MULTILINE
)
_HEADER = re.compile(r'^cdef extern from "([^"]+)"', re.MULTILINE)
_DOCSTRING = re.compile(r'"""(?s:.*?)"""')


@cache
def files(*folders: str, suffixes: tuple[str, ...] = PYTHON + CYTHON) -> list[Path]:
    """The files of some folders; the links inside orcalike/ lead to the other folders."""
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    return sorted(path for path in found if path.suffix in suffixes and path.is_file())


def name_of(path: Path) -> str:
    """A file's place in the project."""
    return path.relative_to(ROOT).as_posix()


@cache
def imports(path: Path) -> list[str]:
    """The modules that a file imports or cimports; a relative import begins with a dot."""
    return list(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    text = path.read_text()
    if path.suffix in CYTHON:
        for source, names in _CYTHON_IMPORT.findall(_DOCSTRING.sub('""', text)):
            yield from [source] if source else [name.split()[0] for name in names.split(",")]
        return
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """What stands below a node, but for expressions, in which nothing is imported."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(node, part, ()):
            yield each
            yield from statements(each)


def within(module: str, *packages: str) -> bool:
    """Whether a module is one of these packages or in one."""
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


# Names.


def test_exports_are_what_is_imported_for_them() -> None:
    for name in orcalike.__all__:  # some come with their first use
        getattr(orcalike, name)
    public = {
        name
        for name, value in vars(orcalike).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and getattr(value, "__module__", "").startswith("orcalike")
    }
    assert public - NOT_EXPORTED == set(orcalike.__all__) - {"__version__"}


@pytest.mark.parametrize("name", sorted(set(orcalike.__all__) - {"__version__"}))
def test_exports_are_documented(name: str) -> None:
    exported = getattr(orcalike, name)
    assert inspect.getdoc(exported)
    if isinstance(exported, type):
        own = {key: value for key, value in vars(exported).items() if not key.startswith("_")}
        called = {key for key, value in own.items() if callable(value) or inspect.isroutine(value)}
        called |= {key for key, value in own.items() if isinstance(value, property)}
        assert [key for key in sorted(called) if not inspect.getdoc(own[key])] == []


def test_errors_stand_in_one_tree() -> None:
    def tree(error: type[orcalike.OrcalikeError]) -> Iterator[str]:
        yield error.__name__
        for below in error.__subclasses__():
            if below.__module__ == "orcalike":
                yield from tree(below)

    raised = set(tree(orcalike.OrcalikeError))
    drawn = set(re.findall(r"\b[A-Z]\w*[a-z]\w*", str(orcalike.errors.__doc__)))
    assert set(orcalike.errors.__all__) == raised
    assert raised <= set(orcalike.__all__)
    assert raised <= drawn


def test_modules_say_what_they_are() -> None:
    sources = [*files(*FOLDERS, suffixes=(".py",)), *files(*PACKAGES, suffixes=CYTHON)]
    silent = [
        name_of(path)
        for path in sources
        if not re.match(r'(#!/usr/bin/env python3\n|# cython: .*\n)?r?"""', path.read_text())
    ]
    assert silent == []


def test_one_name_per_module() -> None:
    """The folders' own names would make a second object of each module."""
    program = (
        "import sys, orcalike, orcalike.launcher.witness, orcalike.cli.verbs\n"
        "from orcalike.transport.wire.message import Message\n"
        "assert Message.__module__ == 'orcalike.transport.wire.message'\n"
        "sys.exit(str({'runtime', 'transport'} & sys.modules.keys() or ''))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.stderr.strip() == ""
    assert {module.split(".")[0] for module in sys.modules} & {"runtime", "transport"} == set()


# Arrows.


def test_imports_are_absolute_and_by_the_packages_names() -> None:
    """A file without a line that may have such an import need not be parsed."""
    may_import = re.compile(r"import(?:[^\n]|\\\n)*\b(?:runtime|transport)\b|from\s*(?:\\\n\s*)?"
                            r"(?:\.|runtime\b|transport\b)")  # fmt: skip
    wrong = [
        (name_of(path), module)
        for path in files(*FOLDERS)
        if may_import.search(path.read_text())
        for module in imports(path)
        if module.startswith(".") or within(module, "runtime", "transport")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("folder", "below"),
    [
        ("transport", ("orcalike.transport",)),
        ("runtime", ("orcalike.runtime", "orcalike.transport")),
    ],
)
def test_arrows_go_down_only(folder: str, below: tuple[str, ...]) -> None:
    upward = [
        (name_of(path), module)
        for path in files(folder)
        for module in imports(path)
        if within(module, "orcalike") and not within(module, *below)
    ]
    assert upward == []


# What is kept out.


def core(*suffixes: str) -> list[Path]:
    """The protocol core: transport without its drivers."""
    drivers = ROOT / "transport" / "drivers"
    return [path for path in files("transport", suffixes=suffixes) if drivers not in path.parents]


def test_the_core_does_no_io() -> None:
    """Ruff bans these modules from the core's Python, and does not read its Cython."""
    settings = tomllib.loads((ROOT / "transport" / "ruff.toml").read_text())
    banned = set(settings["lint"]["flake8-tidy-imports"]["banned-api"]) - {"runtime", "transport"}
    assert banned >= {"asyncio", "os", "random", "socket", "threading", "time"}
    banned |= {"posix", "libc.time", "cpython.time", "select", "secrets", "signal", "uvloop"}
    wrong = [
        (name_of(path), module)
        for path in core(*PYTHON, *CYTHON)
        for module in imports(path)
        if within(module, *banned)
    ]
    wrong += [
        (name_of(path), header)
        for path in core(*CYTHON)
        for header in _HEADER.findall(path.read_text())
        if header not in CORE_HEADERS
    ]
    assert core(".pyx")
    assert wrong == []


def test_nothing_that_arrives_is_run() -> None:
    modules = [
        (name_of(path), module)
        for path in files(*PACKAGES)
        for module in imports(path)
        if within(module, *NO_MODULES)
    ]
    assert modules == []
    assert {name for name, _ in text_runs()} == RUNS_TEXT


def text_runs() -> Iterator[tuple[str, str]]:
    """The files that run text, and what does it there."""
    pattern = re.compile(rf"(?<![\w.])({'|'.join(NO_CALLS)})\s*\(")
    for path in files(*PACKAGES, suffixes=(".pyx",)):
        for call in pattern.findall(_DOCSTRING.sub('""', path.read_text())):
            yield name_of(path), call
    for path in files(*PACKAGES, suffixes=(".py",)):
        text = path.read_text()
        if text.isascii() and not any(name in text for name in NO_CALLS):
            continue  # other letters may be read as these
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Name) and node.id in NO_CALLS:
                yield name_of(path), node.id


def test_files_can_be_read_in_one_go() -> None:
    long = {
        name_of(path): count
        for path in files(*FOLDERS, suffixes=PYTHON + CYTHON + C)
        if (count := len(path.read_text().splitlines())) > LINES_MAX
    }
    assert long == {}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """By file, what is said in the project's own words; read once for all bans."""
    paths = [
        *files(*FOLDERS),
        *files("docs", suffixes=(".md",)),
        *files("tests/campaign/mutants", suffixes=(".toml",)),
        *ROOT.glob("*.md"),
    ]
    return {name_of(path): prose(path) for path in paths}


def in_place(name: str, place: str) -> bool:
    """Whether a file is this one, or in this folder."""
    return name == place or name.startswith(f"{place}/")


@pytest.mark.parametrize("ban", BANS, ids=lambda ban: ban.words.partition("|")[0].strip("(?:"))
def test_banned_words_are_left_in_listed_files_only(ban: Ban, texts: dict[str, str]) -> None:
    found = [name for name, text in texts.items() if ban.stands_in(text)]
    more = [name for name in found if not any(in_place(name, place) for place in ban.left)]
    assert more == [], f"write: {ban.instead}"
    clean = [place for place in ban.left if not any(in_place(name, place) for name in found)]
    assert clean == [], "take what is clean off the list in tests/lib/words.py"


def test_a_banned_word_is_found_in_comments_docstrings_and_names(tmp_path: Path) -> None:
    path = tmp_path / "sample.py"
    for text, is_found in (
        ('"""Nobody is there."""\n', True),
        ("number = 1  # for somebody\n", True),
        ("def test_who_waits(): ...\n", True),
        ("#: As `who` says.\nwhose = 'nobody'\n", False),
    ):
        path.write_text(text)
        assert BANS[0].stands_in(prose(path)) is is_found, text


def test_each_kind_of_test_has_a_marker_and_a_row_in_docs() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    markers = {line.partition(":")[0] for line in settings["ini_options"]["markers"]}
    kinds = {path.relative_to(ROOT / "tests").parts[0] for path in files("tests") if is_test(path)}
    assert markers == kinds
    page = (ROOT / "docs" / "testing.md").read_text()
    assert [kind for kind in kinds if f"\n| {kind} |" not in page] == []


def is_test(path: Path) -> bool:
    """Whether pytest collects it."""
    return path.name.startswith("test_")


def test_unit_tests_stand_in_folders_of_the_sources() -> None:
    """`tests/unit/session` is of `orcalike/session`, `tests/unit/transport/wire` of `transport/wire`."""
    unit = ROOT / "tests" / "unit"
    folders = {path.parent.relative_to(unit) for path in unit.rglob("test_*.py")}
    missing = [
        folder.as_posix()
        for folder in folders
        if folder == Path()
        or not any((base / folder).is_dir() for base in (ROOT, ROOT / "orcalike"))
    ]
    assert missing == [], "move them"
