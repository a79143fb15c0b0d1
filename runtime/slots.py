"""The attributes of objects that are not in their `__dict__`."""

from __future__ import annotations

from collections.abc import Iterable
from types import MemberDescriptorType


def slots_of(classes: Iterable[type]) -> tuple[str, ...]:
    """The names of what these classes keep in slots; private ones as the class has made them."""
    return tuple(
        name
        for cls in classes
        for name, value in vars(cls).items()
        if isinstance(value, MemberDescriptorType)
    )
