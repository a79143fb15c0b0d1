"""The objects that were dropped are found as long as something refers to them, and kept no longer."""

from __future__ import annotations

import gc
import weakref

from orcalike.runtime.remains import LOOKED_AFTER, Remains


class Thing:
    """What was shared."""


class Replica:
    """Says whether the class of its object allows weak references."""

    def __init__(self, number: int, *, weak: bool = True) -> None:
        self.number = number
        self.weak = weak

    def release(self) -> bool:
        return self.weak


def test_what_is_referred_to_is_found() -> None:
    remains = Remains()
    things = [Thing() for _ in range(3 * LOOKED_AFTER)]
    for number, thing in enumerate(things):
        remains.add(Replica(number), thing)  # type: ignore[arg-type]
    assert [remains.get(number) for number in range(len(things))] == things
    assert remains.all() == things
    assert remains.get(len(things)) is None


def test_what_nothing_refers_to_is_gone() -> None:
    remains, thing = Remains(), Thing()
    remains.add(Replica(7), thing)  # type: ignore[arg-type]
    del thing
    gc.collect()
    assert remains.get(7) is None
    assert remains.all() == []


def test_what_allows_no_weak_reference_is_kept() -> None:
    remains, kept = Remains(), object()
    remains.add(Replica(7, weak=False), kept)  # type: ignore[arg-type]
    assert remains.get(7) is kept
    assert remains.all() == [kept]
    remains.clear()
    assert remains.all() == []


def test_references_to_what_is_gone_are_dropped() -> None:
    """A program that shares and drops for days has a bounded number of them; none has a callback."""
    remains = Remains()
    kept = [Thing() for _ in range(10)]
    for number in range(100 * LOOKED_AFTER):
        thing = kept[number] if number < len(kept) else Thing()
        remains.add(Replica(number), thing)  # type: ignore[arg-type]
        del thing
    references = [ref for ref in gc.get_referents(remains._found) if type(ref) is weakref.ref]
    assert len(references) <= 2 * (len(kept) + LOOKED_AFTER)
    assert all(ref.__callback__ is None for ref in references)
    assert remains.all() == kept
