"""The numbers of what travels beyond msgpack's own types: its extension types."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from orcalike.runtime.plain import LIST_TAG


class Code(IntEnum):
    """The extension types. Leaves count from 1, tags from 64; numbers are never used again."""

    BIG_INT = 1
    COMPLEX = 2
    DECIMAL = 3
    UUID = 4
    BYTEARRAY = 5
    NUMPY_ARRAY = 6
    NUMPY_SCALAR = 7
    REFERENCE = 8

    LIST = LIST_TAG
    SET = 65
    FROZENSET = 66
    DATE = 67
    TIME = 68
    DATETIME = 69
    TIMEDELTA = 70
    TIMEZONE = 71
    ZONE = 72
    ENUM = 73
    FLAG = 74
    DATACLASS = 75
    MEMBER = 76
    DEQUE = 77
    ORDERED_DICT = 78
    COUNTER = 79
    DEFAULT_DICT = 80
    PATH = 81
    NAMED_TUPLE = 82


LAST_LEAF, FIRST_TAG, LAST_TAG = Code.REFERENCE, Code.LIST, Code.NAMED_TUPLE

NOTED, AGAIN = 62, 61
"""In streams of states alone: the value that comes next may come again, and here one does, by its number."""

Form = tuple[int, bytes | tuple[Any, ...]]
"""A code with a leaf's payload, or with the elements of a tagged array."""
