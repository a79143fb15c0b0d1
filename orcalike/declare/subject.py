"""A function that is checked for what replicas must not do, and one line for what is found."""

from __future__ import annotations

from types import FunctionType
from typing import Any

CONSTRUCTORS = ("__init__", "__post_init__")
"""What runs when an object is made, at each replica."""


class Subject:
    """A function to check, and by which rules."""

    def __init__(
        self,
        function: FunctionType,
        label: str,
        pure: bool,
        owned: frozenset[str],
        cls: type[Any] | None = None,
        origin: type[Any] | None = None,
        helper: bool = False,
        guard: bool = False,
        known: bool = False,
    ) -> None:
        self.function = function
        self.label = label
        """What messages call it: `JobQueue.put`."""
        self.pure = pure
        """Reads and guards: what is `owned` may not change."""
        self.owned = owned
        """The parameters that stand for shared objects: `self`, or all of an atomic function's."""
        self.cls = cls
        """The shared class, in which `self.name` is looked up; None for plain functions."""
        self.origin = origin
        """The class that defines it, for `super()` and names with two underscores."""
        self.helper = helper
        """Called by an operation; it may be a generator that the operation runs through."""
        self.guard = guard
        """It is a guard, or called by one."""
        self.known = known
        """It is checked without the guard, too: only what is wrong in a guard alone is said."""

    def as_helper(self, *, known: bool = False) -> Subject:
        """The same, called by an operation."""
        same = self.function, self.label, self.pure, self.owned, self.cls, self.origin
        return Subject(*same, helper=True, guard=self.guard, known=known)

    def owning(self, parameters: frozenset[str]) -> Subject:
        """The same, where other parameters stand for shared objects."""
        of_class = self.cls, self.origin, self.helper, self.guard
        return Subject(self.function, self.label, self.pure, parameters, *of_class)


def method_subject(
    cls: type[Any],
    origin: type[Any],
    function: FunctionType,
    label: str,
    *,
    pure: bool,
    guard: bool = False,
) -> Subject:
    """The subject for a method, whose first parameter is the object."""
    owned = frozenset(function.__code__.co_varnames[:1])
    return Subject(function, label, pure, owned, cls, origin, guard=guard)


def finding(function: FunctionType, label: str, what: str, remedy: str, line: int = 0) -> str:
    """One line of a DeclarationError: the place, the label, what is wrong, and what to do."""
    code = function.__code__
    return f"{code.co_filename}:{line or code.co_firstlineno}: {label} {what}; {remedy}"
