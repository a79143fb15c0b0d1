"""What `@local` and `@invariant` leave on a function."""

from __future__ import annotations

from typing import Any

_LOCAL = "__orcalike_local__"
_INVARIANT = "__orcalike_invariant__"


def mark_local(function: Any) -> None:
    """Says that a public function of a shared class is no operation."""
    setattr(function, _LOCAL, True)


def mark_invariant(function: Any) -> None:
    """Says that a method looks at the object after each write."""
    setattr(function, _INVARIANT, True)


def is_local(function: object) -> bool:
    """Whether a function was declared `@local`."""
    return hasattr(function, _LOCAL)


def is_invariant(function: object) -> bool:
    """Whether a function was declared `@invariant`."""
    return hasattr(function, _INVARIANT)
