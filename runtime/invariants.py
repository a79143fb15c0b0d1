"""Invariants: what a class says of its objects, looked at after each write at each replica.

It is a method of the class, and looks as a read does: so each replica comes to the same, and what is
broken is an error of the write for its caller. Classes without invariants pay nothing.
"""

from __future__ import annotations

from typing import Any

from orcalike.runtime.classes import ClassInfo
from orcalike.runtime.errors import InvariantBroken
from orcalike.transport.wording import repr_of


def check_invariants(
    shared: Any, info: ClassInfo, name: str, ran: str, failure: Exception | None = None
) -> None:
    """Look at all of an object after the operation `ran`, which has raised `failure` if anything.

    Raises InvariantBroken for the first that does not hold, and what is a fault of this process.
    """
    for invariant in info.invariants:
        try:
            holds = invariant(shared)
        except (MemoryError, RecursionError, ImportError):
            raise
        except Exception as error:
            raise _broken(invariant, info, name, ran, f"it raised {repr_of(error)}") from error
        if holds is not None and not holds:
            raise _broken(invariant, info, name, ran, f"it returned {repr_of(holds)}") from failure


def _broken(invariant: Any, info: ClassInfo, name: str, ran: str, how: str) -> InvariantBroken:
    return InvariantBroken(
        f"{ran} of {name!r} broke the invariant {info.cls.__name__}.{invariant.__name__}: {how}"
    )
