"""Rank 0 writes what rank 2 lacks something to read; each rank tells what it has and what it raises.

Each argument is `WHAT-WAY`, for a group of its own. WHAT is `class`, `numpy`, `zone` or `imported` (which rank 2
can import), WAY in what kind of invocation it travels.
"""

from __future__ import annotations

import importlib.abc
import sys
import zoneinfo
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common import tell

import orcalike as orca


@dataclass(frozen=True)
class Point:
    """A value that rank 2 has not registered."""

    x: int


@orca.shared
class Board:
    """Counts what it is given."""

    def __init__(self, first: object = None) -> None:
        self.count = 0

    @orca.read
    def get(self) -> int:
        return self.count

    @orca.write
    def put(self, what: object) -> int:
        self.count += 1
        return self.count

    @orca.write
    def put_named(self, *, what: object) -> int:
        self.count += 1
        return self.count

    @orca.write
    def put_when(self, what: object) -> int:
        self.count += 1
        return self.count

    @put_when.when
    def _(self, what: object) -> bool:
        return self.count >= 0

    @orca.write(popup=True)
    def put_slowly(self, what: object) -> int:
        self.count += 1
        return self.count

    @orca.write
    def load(self, name: str) -> None:
        """Imports a module, which one rank lacks."""
        import numpy  # noqa: F401

        self.count += 1


@orca.atomic
def put_both(one: Board, other: Board, what: object) -> None:
    """Count in both."""
    one.put(what)
    other.put(what)


class Lacking(importlib.abc.MetaPathFinder):
    """Finds out nothing about some modules: they are not installed here."""

    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] in ("numpy", "tzdata"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def lack(what: str, rank: int) -> None:
    """Make this process one that lacks it."""
    if what == "class" and rank != 2:
        orca.register(Point)
    if (
        what in ("numpy", "zone")
        and rank == 2
        and not any(isinstance(it, Lacking) for it in sys.meta_path)
    ):
        sys.meta_path.insert(0, Lacking())
        zoneinfo.reset_tzpath([])


def value_of(what: str) -> Any:
    """What rank 0 passes."""
    if what == "class":
        return {"at": [Point(1)]}
    if what == "zone":
        return datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Paris"))
    import numpy

    return numpy.arange(3)


def write(what: str, way: str) -> None:
    """In a group of that name: rank 0 writes it, and each rank tells what came of it."""
    with orca.join(f"{what}-{way}") as group:
        lack(what, group.rank)
        board, other = group.share(Board, "board"), group.share(Board, "other")
        group.barrier()
        error = ""
        try:
            if group.rank == 0:
                value = value_of(what)
                if way == "atomic":
                    put_both(board, other, value)
                elif way == "share":
                    group.share(Board, "third", value)
                elif way == "put_named":
                    board.put_named(what=value)
                elif way == "load":
                    board.load("numpy")
                else:
                    getattr(board, way)(value)
            group.barrier()
        except orca.OrcalikeError as caught:
            error = f"{type(caught).__name__}: {caught}"
        read = ""
        try:
            board.get()
        except orca.OrcalikeError as caught:
            read = type(caught).__name__
        has_numpy = "numpy" in sys.modules
        tell(
            group=group.name,
            rank=group.rank,
            error=error,
            count=board.count,
            read=read,
            numpy=has_numpy,
        )


assert "numpy" not in sys.modules
for argument in sys.argv[1:]:
    write(*argument.split("-"))
