"""Resilience degrees as they travel: a byte (Amoeba 3.1: A31, A32; H2).

Degree r: a cast is delivered when r + 1 members hold it. How many a majority is depends on the view.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

Resilience: TypeAlias = int | Literal["majority"]
"""A degree as a program gives it."""

MEMBERS_MAX = 1024
"""The largest view: a place in it fits the wire, and the list of it a control message."""

NUMBER_MAX = 253
MAJORITY = 254
ALL = 255
"""All members of the view."""
AVAILABLE = 256
"""A flag beside a degree: as far as the view has members for it, MIN(r, members - 1) (Amoeba 3.1).

Members count that have replicas, with complete state.
"""


def degree_of(resilience: object) -> int:
    """The byte for a degree that a program gives; raises ValueError if it is none."""
    match resilience:
        case "majority":
            return MAJORITY
        case bool():
            pass
        case int(degree) if 0 <= degree <= NUMBER_MAX:
            return degree
    raise ValueError(
        f"resilience={resilience!r}: the degree is the number of members that may crash without "
        f'loss, from 0 to {NUMBER_MAX}, or "majority"'
    )


def resilience_of(degree: int) -> Resilience:
    """A degree that a program gave, from its byte."""
    return "majority" if degree == MAJORITY else degree


def least_of(degrees: Iterable[int]) -> int:
    """The smallest degree above 0, and 0 if there is none: R in H1.

    A number counts as smaller than a majority: a write that a majority holds is in each majority,
    so the first part of H1's rule is enough for it.
    """
    return min((degree for degree in degrees if degree > 0), default=0)


def number_of(degree: int, members: int) -> int:
    """How many beside the sequencer must hold a cast of this degree, in a view of so many members."""
    return {MAJORITY: members // 2, ALL: members - 1}.get(degree, degree)


def largest_of(degrees: Iterable[int], members: int) -> int:
    """The degree that covers all of these in a view of so many members.

    All of the view covers a number that the view has no room for by one.
    """
    return max(degrees, key=lambda degree: (number_of(degree, members) + (degree == ALL), degree))
