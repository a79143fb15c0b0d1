from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

MEMBERS_MAX: Final[int]
NUMBER_MAX: Final[int]
MAJORITY: Final[int]
ALL: Final[int]
AVAILABLE: Final[int]

Resilience: TypeAlias = int | Literal["majority"]
"""A degree as a program gives it."""

def degree_of(resilience: object) -> int: ...
def resilience_of(degree: int) -> Resilience: ...
def least_of(degrees: Iterable[int]) -> int: ...
def number_of(degree: int, members: int) -> int: ...
def largest_of(degrees: Iterable[int], members: int) -> int: ...
