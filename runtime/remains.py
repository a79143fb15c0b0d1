"""The objects that were dropped and that the program, or another object, still refers to."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orcalike.runtime.replica import Replica

LOOKED_AFTER = 64
"""So many more objects, at least, come before those that are gone are looked for again."""


class Remains:
    """They are found by number as long as something refers to them.

    No callback tells when one is gone: what a handler of a signal raises in a callback, Python drops.
    """

    def __init__(self) -> None:
        self._found: dict[int, weakref.ref[object]] = {}
        self._kept: dict[int, object] = {}
        """Likewise, where the class allows no weak reference."""
        self._look_at = LOOKED_AFTER

    def add(self, replica: Replica, shared: object) -> None:
        """An object was dropped: from now on its replica does not keep it."""
        if not replica.release():
            self._kept[replica.number] = shared
            return
        if len(self._found) >= self._look_at:
            self._found = {each: ref for each, ref in self._found.items() if ref() is not None}
            self._look_at = 2 * len(self._found) + LOOKED_AFTER
        self._found[replica.number] = weakref.ref(shared)

    def get(self, number: int) -> object | None:
        """The object, if there is one still."""
        ref = self._found.get(number)
        return self._kept.get(number) if ref is None else ref()

    def all(self) -> list[object]:
        """Those that there are."""
        found = (ref() for ref in self._found.values())
        return [*(each for each in found if each is not None), *self._kept.values()]

    def clear(self) -> None:
        """Nothing that was known holds any more."""
        self._found, self._kept, self._look_at = {}, {}, LOOKED_AFTER
