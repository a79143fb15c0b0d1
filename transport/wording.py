"""Numbers with their nouns, lists, and what belongs to the program, in texts."""

from __future__ import annotations

from collections.abc import Collection

NAMED = 10
"""Of a longer list a text names so many, and says how many there are beside."""


def counted(number: int, noun: str, nouns: str = "") -> str:
    """`1 member`, `2 members`; `nouns` if the plural is not the noun with an s."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def visible(text: str) -> str:
    """The text as a terminal may show it, in one line: what is not printable stands there as in `repr`."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def repr_of(value: object) -> str:
    """`repr(value)`; where that raises, as a class of the program's may, its type and what it raised."""
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - whatever it is, the text is only about the value
        return f"<{type(value).__name__}, of which repr() raises {type(error).__name__}>"


def text_of(error: BaseException) -> str:
    """`str(error)`; where that raises, as a class of the program's may, what it raised."""
    try:
        return str(error)
    except Exception as other:  # noqa: BLE001
        return f"<str() raises {type(other).__name__}>"


def listed(items: Collection[object]) -> str:
    """`a`, `a and b`, `a, b and c`; of many the first ten, `and 290 more`."""
    names = [str(item) for _, item in zip(range(NAMED), items, strict=False)]
    if len(items) > NAMED:
        names.append(f"{len(items) - NAMED} more")
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
