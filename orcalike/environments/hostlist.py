"""Slurm's lists: `n[1-3,07],login` stands for n1, n2, n3, n07 and login, `4(x2),3` for 4, 4 and 3."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

TEXT_MAX = 1 << 20
HOSTS_MAX = 65536

_PART = re.compile(r"[^\[\],]+|\[[^\[\]]*\]|,")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_COUNT = re.compile(r"(\d{1,6})(?:\(x(\d{1,6})\))?", re.ASCII)


def expand(text: str, most: int = HOSTS_MAX) -> list[str]:
    """The first hosts of a list, `most` of them at the most; raises ValueError for what is no list."""
    return list(itertools.islice(_hosts(text), most))


def expand_counts(text: str, most: int = HOSTS_MAX) -> list[int]:
    """The first counts of a list, one for each host; raises ValueError for what is no list."""
    counts: list[int] = []
    for item in text.split(","):
        match = _COUNT.fullmatch(item)
        if match is None:
            raise ValueError(f"{text[:80]!r} is no list of counts")
        counts += [int(match[1])] * min(int(match[2] or 1), most - len(counts))
    return counts


def _hosts(text: str) -> Iterator[str]:
    parts = _PART.findall(text)
    if not text or len(text) > TEXT_MAX or "".join(parts) != text:
        raise ValueError(f"{text[:80]!r} is no list of hosts")
    for is_comma, group in itertools.groupby(parts, lambda part: part == ","):
        pieces = list(group)
        if is_comma and len(pieces) > 1:
            raise ValueError(f"{text[:80]!r} is no list of hosts: it has a host without a name")
        if not is_comma:
            yield from _combined(pieces)


def _combined(pieces: list[str]) -> Iterator[str]:
    """All that `rack[1-2]n[1-3]` stands for; nothing is kept of what is not asked for."""
    if not pieces:
        yield ""
        return
    for first in _alternatives(pieces[0]):
        for rest in _combined(pieces[1:]):
            yield first + rest


def _alternatives(piece: str) -> Iterator[str]:
    if not piece.startswith("["):
        yield piece
        return
    for each in piece[1:-1].split(","):
        match = _RANGE.fullmatch(each)
        if match is None:
            raise ValueError(f"{piece!r} is no range of hosts")
        first, last = match[1], match[2] or match[1]
        for number in range(int(first), int(last) + 1):
            yield f"{number:0{len(first)}d}"
