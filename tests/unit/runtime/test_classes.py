"""The registry, and the digests by which members know each other's classes (design 7)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from orcalike.declare.decorators import read, shared, write
from orcalike.runtime.classes import (
    AtomicInfo,
    ClassInfo,
    digest_of,
    lookup,
    lookup_class,
    on_declared,
)
from orcalike.runtime.registered import import_name

BASE = """
from orcalike.declare.decorators import read, shared, write

@shared
class Jobs:
    def __init__(self, limit=3):
        self.items = []
    @write
    def put(self, item: int) -> None:
        self.items.append(item)
    @put.when
    def _(self, item: int) -> bool:
        return len(self.items) < 3
"""


def digest(folder: Path, text: str) -> bytes:
    """The digest of the class that a program with this text declares."""
    path = folder / f"jobs{len(list(folder.iterdir()))}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("jobs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    info = lookup_class(module.Jobs)
    assert info is not None
    return info.digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.items = []", "self.items = []  # empty"),
        ("@shared", "\n\n@shared"),
        ("-> None:\n", "-> None:\n        '''Adds an item.'''\n"),
    ],
)
def test_comments_lines_and_docstrings_do_not_matter(tmp_path: Path, old: str, new: str) -> None:
    assert digest(tmp_path, BASE.replace(old, new)) == digest(tmp_path, BASE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def put(self", "def add(self"),
        ("item: int) -> None", "item: float) -> None"),
        ("limit=3", "limit=4"),
        ("append(item)", "insert(0, item)"),
        ("< 3", "< 4"),
        ("    @write", "    @write(undo=True)"),
        ("@shared", "@shared(resilience=1)"),
    ],
)
def test_what_an_operation_does_matters(tmp_path: Path, old: str, new: str) -> None:
    changed = BASE.replace(old, new)
    if "def add" in changed:
        changed = changed.replace("put.when", "add.when")
    assert digest(tmp_path, changed) != digest(tmp_path, BASE)


def test_without_source_the_compiled_code_is_compared() -> None:
    def compiled(text: str) -> Any:
        names: dict[str, Any] = {}
        exec(text, names)  # noqa: S102
        return names["f"]

    one = compiled("def f(a):\n    'doc'\n    return a in {'x', 'y', 'z'}")
    same = compiled("def f(a):\n    'other'\n\n    return a in {'z', 'y', 'x'}")
    other = compiled("def f(a):\n    'doc'\n    return a in {'x', 'y', 'w'}")

    assert len(digest_of([], [one])) == 16
    assert digest_of([], [one]) == digest_of([], [same])
    assert digest_of([], [one]) != digest_of([], [other])
    assert digest_of(["put"], [one]) != digest_of(["get"], [one])


def test_a_listener_is_notified_of_a_class() -> None:
    received: list[ClassInfo | AtomicInfo] = []
    cancel = on_declared(received.append)

    @shared
    class Jobs:
        @read
        def look(self) -> int:
            return 1

    cancel()

    @shared
    class Others:
        @write
        def put(self) -> None: ...

    info = lookup_class(Jobs)
    assert info is not None
    assert received == [info]
    assert lookup(import_name(Jobs)) is info
    assert info.name.endswith(":test_a_listener_is_notified_of_a_class.<locals>.Jobs")
    assert lookup("nowhere:Jobs") is None
    assert lookup_class(int) is None
