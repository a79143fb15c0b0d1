"""Histories as they were recorded: one for each incarnation of a member."""

from __future__ import annotations

import gc
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from orcalike.history_check.record_forms import has_form
from orcalike.runtime.history import quoted_group

Record = dict[str, Any]

MessageId = tuple[str, int]
"""(incarnation, ticket): what names an invocation."""

Place = tuple[int, int]
"""(gseq, index): a place in the order."""


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """A promise that a history breaks."""

    invariant: str
    member: str
    """The incarnation at which it shows; "" if it shows at none."""
    what: str

    def __str__(self) -> str:
        return f"{self.invariant} at {self.member or 'the group'}: {self.what}"


@dataclass
class History:
    """What one incarnation recorded, in its order."""

    incarnation: str
    rank: int | None
    records: list[Record] = field(default_factory=list)

    def of(self, *kinds: str) -> Iterable[Record]:
        """The records of some kinds."""
        if len(kinds) == 1:
            return self._by_kind.get(kinds[0], ())
        return (record for record in self.records if record["kind"] in kinds)

    @cached_property
    def _by_kind(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = defaultdict(list)
        for record in self.records:
            found[record["kind"]].append(record)
        return dict(found)

    @cached_property
    def deliveries(self) -> list[tuple[Place, Record]]:
        """What it delivered, each with its place."""
        return [((record["gseq"], record["index"]), record) for record in self.of("deliver")]

    @property
    def left(self) -> bool:
        """Whether it left in an orderly way; a member that was killed, or was expelled, did not."""
        return any(not record["why"].startswith("expelled") for record in self.of("exit"))

    @property
    def last_time(self) -> int:
        """When it wrote its last record."""
        return max((int(record["t"]) for record in self.records), default=0)

    @property
    def lineage(self) -> int:
        """The last that it was in."""
        return max((int(record["identity"][0]) for record in self.of("view")), default=0)


def place_of(record: Record) -> Place:
    """Where a `deliver` record stands in the order."""
    return record["gseq"], record["index"]


def load(folder: Path, group: str = "default") -> list[History]:
    """All histories of a group in a folder; a line that a kill cut short is left out.

    Raises ValueError for a line that is no record, unless it is a file's last, and OSError if a file
    cannot be read.
    """
    names = re.compile(re.escape(quoted_group(group)) + r"-[^-]+-[^-]+\.jsonl")
    gc.disable()  # millions of records, and none of them is garbage
    try:
        found = [
            read(path) for path in sorted(folder.glob("*.jsonl")) if names.fullmatch(path.name)
        ]
    finally:
        gc.enable()
    return [history for history in found if history is not None]


def read(path: Path) -> History | None:
    """The history in a file; None if it holds not even its first line."""
    records = list(_parse(path))
    if not records:
        return None
    first = records[0]
    if not {"incarnation", "rank"} <= first.keys():
        raise ValueError(f"{path}:1: no record")
    return History(first["incarnation"], first["rank"], records[1:])


def _parse(path: Path) -> Iterator[Record]:
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            if number == len(lines):
                return
            record = None
        if not has_form(record):
            raise ValueError(f"{path}:{number}: no record")
        yield record


def invocations(histories: Iterable[History]) -> dict[MessageId, Record]:
    """What was invoked, by the invocation's name; of two with one ticket the later counts.

    (The earlier could not be put into a packet: its arguments do not travel.)
    """
    return {
        (history.incarnation, record["ticket"]): record
        for history in histories
        for record in history.of("invoke")
    }


def outcomes(histories: Iterable[History], kind: str) -> dict[MessageId, Record]:
    """The `ok`, `fail` or `info` records, by the invocation's name."""
    return {
        (history.incarnation, record["ticket"]): record
        for history in histories
        for record in history.of(kind)
    }
