"""A function that is checked for what replicas must not do, and one line for what is found."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType
from typing import Any


@dataclass(frozen=True, slots=True)
class Subject:
    """A function to check, and by which rules."""

    function: FunctionType
    label: str
    """What messages call it: `JobQueue.put`."""
    pure: bool
    """Reads and guards: what is `owned` may not change."""
    owned: frozenset[str]
    """The parameters that stand for shared objects: `self`, or all of an atomic function's."""
    cls: type[Any] | None = None
    """The shared class, in which `self.name` is looked up; None for plain functions."""
    origin: type[Any] | None = None
    """The class that defines it, for `super()` and names with two underscores."""
    helper: bool = False
    """Called by an operation; it may be a generator that the operation runs through."""


def method_subject(
    cls: type[Any], origin: type[Any], function: FunctionType, label: str, *, pure: bool
) -> Subject:
    """The subject for a method, whose first parameter is the object."""
    return Subject(function, label, pure, frozenset(function.__code__.co_varnames[:1]), cls, origin)


def finding(function: FunctionType, label: str, what: str, remedy: str, line: int = 0) -> str:
    """One line of a DeclarationError: the place, the label, what is wrong, and what to do."""
    code = function.__code__
    return f"{code.co_filename}:{line or code.co_firstlineno}: {label} {what}; {remedy}"


def title(thing: type[Any] | FunctionType) -> str:
    """What messages call a class or function: its name, without that of a function around it."""
    return thing.__qualname__.rpartition("<locals>.")[2]
