"""Resilience degrees as they travel: a byte (Amoeba 3.1: A31, A32; H2).

Degree r: a cast is delivered when r + 1 members hold it. How many a majority is depends on the view.
"""

from typing import Literal

Resilience = int | Literal["majority"]


def degree_of(resilience):
    """The byte for a degree that a program gives; raises ValueError if it is none."""
    if isinstance(resilience, str) and resilience == "majority":
        return MAJORITY
    if (isinstance(resilience, int) and not isinstance(resilience, bool)
            and 0 <= resilience <= NUMBER_MAX):
        return resilience
    raise ValueError(
        f"resilience={resilience!r}: the degree is the number of members that may crash without "
        f'loss, from 0 to {NUMBER_MAX}, or "majority"')


def resilience_of(int degree):
    """A degree that a program gave, from its byte."""
    return "majority" if degree == MAJORITY else degree


def least_of(degrees):
    """The smallest degree above 0, and 0 if there is none: R in H1.

    A number counts as smaller than a majority: a write that a majority holds is in each majority,
    so the first part of H1's rule is enough for it.
    """
    return min((degree for degree in degrees if degree > 0), default=0)


def number_of(int degree, int members):
    """How many beside the sequencer must hold a cast of this degree, in a view of so many members."""
    if degree == MAJORITY:
        return members // 2
    return members - 1 if degree == ALL else degree


def largest_of(degrees, int members):
    """The degree that covers all of these in a view of so many members.

    All of the view covers a number that the view has no room for by one.
    """
    return max(degrees, key=lambda degree: (number_of(degree, members) + (degree == ALL), degree))
