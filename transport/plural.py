"""A number with its noun, for texts."""

from __future__ import annotations


def counted(number: int, noun: str, nouns: str = "") -> str:
    """`1 member`, `2 members`; `nouns` if the plural is not the noun with an s."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"
