"""No compiled class has an attribute with the name of one of its base's: in C both would be there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLASS = re.compile(r"^cdef class (?P<name>\w+)(?:\((?P<base>\w+)\))?:")
ATTRIBUTE = re.compile(
    r"^    cdef (?:public |readonly )?[\w.\[\]:* ]+?\b(?P<names>\w+(?:, *\w+)*)$"
)


def attributes(text: str) -> dict[str, tuple[str, set[str]]]:
    """The base and the attributes of each class that a `.pxd` declares."""
    found: dict[str, tuple[str, set[str]]] = {}
    name = ""
    for line in text.splitlines():
        code = line.partition("#")[0].rstrip()
        if (cls := CLASS.match(code)) is not None:
            name = cls["name"]
            found[name] = cls["base"] or "", set()
        elif code and not code.startswith(" "):
            name = ""
        elif name and (attribute := ATTRIBUTE.match(code)) is not None:
            found[name][1].update(re.split(r", *", attribute["names"]))
    return found


def hidden(classes: dict[str, tuple[str, set[str]]]) -> list[str]:
    wrong = []
    for name, (base, own) in classes.items():
        while base in classes:
            base, above = classes[base][0], classes[base][1]
            wrong += [f"{name}.{each}" for each in sorted(own & above)]
    return wrong


def test_no_attribute_hides_one_of_a_base() -> None:
    classes: dict[str, tuple[str, set[str]]] = {}
    for folder in ("runtime", "transport"):
        for path in sorted((ROOT / folder).rglob("*.pxd")):
            classes |= attributes(path.read_text(encoding="utf-8"))
    assert "scheduled" in classes["Layer"][1]
    assert classes["Runtime"][1]
    assert hidden(classes) == []


def test_an_attribute_that_hides_another_is_found() -> None:
    text = """
cdef class Layer:
    cdef readonly Core core
    cdef bint waiting               # is in core.todo
    cpdef start(self)

cdef class Caller(Layer):
    cdef readonly dict names, others

cdef class Runtime(Caller):
    cdef readonly dict waiting
    cdef int others
"""
    assert hidden(attributes(text)) == ["Runtime.others", "Runtime.waiting"]
