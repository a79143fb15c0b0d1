"""Numbers with their nouns, and lists, in texts."""

from __future__ import annotations

from collections.abc import Collection

NAMED = 10
"""Of a longer list a text names so many, and says how many there are beside."""


def counted(number: int, noun: str, nouns: str = "") -> str:
    """`1 member`, `2 members`; `nouns` if the plural is not the noun with an s."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def listed(items: Collection[object]) -> str:
    """`a`, `a and b`, `a, b and c`; of many the first ten, `and 290 more`."""
    names = [str(item) for _, item in zip(range(NAMED), items, strict=False)]
    if len(items) > NAMED:
        names.append(f"{len(items) - NAMED} more")
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
