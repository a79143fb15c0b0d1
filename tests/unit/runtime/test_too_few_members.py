"""Calls whose degree the group has too few members for: what was not sent holds up nothing behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import orcalike as orca
from tests.lib.processes import DEADLINE, until

MOMENT = 0.2
"""Seconds after which a call that cannot go on gives up."""


@orca.shared
class Notes:
    """Writes of several degrees."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    @orca.write
    def note(self, text: str) -> int:
        self.notes.append(text)
        return len(self.notes)

    @orca.write(resilience=1)
    def note_on_two(self, text: str) -> int:
        self.notes.append(text)
        return len(self.notes)

    @orca.write(resilience=2)
    def note_on_three(self, text: str) -> int:
        self.notes.append(text)
        return len(self.notes)

    @orca.read
    def all(self) -> list[str]:
        return list(self.notes)


@orca.atomic(resilience=1)
def copy_on_two(source: Notes, target: Notes) -> None:
    """An atomic function with a degree of its own."""
    target.notes = list(source.notes)


@orca.shared(resilience=2)
class Held(Notes):
    """Notes of which each write has a degree."""


@orca.atomic
def copy_notes(source: Notes, target: Notes) -> None:
    """An atomic function without a degree of its own."""
    target.notes = list(source.notes)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"unix:{tmp_path}/a"


@pytest.fixture(params=["TOTAL", "RING"])
def stack(request: pytest.FixtureRequest) -> str:
    return f"PACK:XFER:{request.param}:MBRSHIP:COM:unix"


@pytest.fixture
def group(place: str, stack: str) -> Iterator[orca.Group]:
    """A member that is alone, where others may join."""
    with orca.join("few", listen=place, stack=stack) as group:
        yield group


def test_what_was_not_sent_holds_up_nothing(group: orca.Group) -> None:
    notes = group.share(Notes, "notes")
    assert notes.note("a") == 1
    with pytest.raises(orca.NotEnoughMembers, match="it was not sent"):
        notes.note_on_two.options(timeout=MOMENT)("b")
    assert notes.note.options(timeout=DEADLINE)("c") == 2
    assert group.share(Notes, "others").note.options(timeout=DEADLINE)("d") == 1
    assert notes.all() == ["a", "c"]


def test_calls_behind_it_go_as_it_is_taken_back(group: orca.Group) -> None:
    """Also in one packet with it, and where more of them wait: each by its own degree."""
    notes = group.share(Notes, "notes")
    first, second = notes.note_on_two.nowait("a"), notes.note_on_three.nowait("b")
    behind = [notes.note.nowait("c"), notes.note.nowait("d")]
    assert second.cancel()
    with pytest.raises(orca.InvocationCancelled):
        second.result()
    with pytest.raises(TimeoutError):
        behind[0].result(timeout=MOMENT)  # `first` is before them, and waits
    assert first.cancel()
    assert [each.result(timeout=DEADLINE) for each in behind] == [1, 2]


def test_a_smaller_degree_behind_one_that_was_taken_back(
    group: orca.Group, place: str, stack: str
) -> None:
    notes = group.share(Notes, "notes")
    first, second = notes.note_on_three.nowait("a"), notes.note_on_two.nowait("b")
    assert first.cancel()
    with orca.join(
        "few", seeds=[place], stack=stack
    ) as other:  # two members: enough for the second
        until(lambda: len(group.members) == len(other.members) == 2)
        assert second.result(timeout=DEADLINE) == 1
        assert notes.note_on_two("c") == 2


def test_an_atomic_function_has_the_largest_degree_of_its_objects(group: orca.Group) -> None:
    notes, held = group.share(Notes, "notes"), group.share(Held, "held")
    copy = group.share(Notes, "copy")
    for source, target in ((notes, held), (held, notes)):
        with pytest.raises(orca.NotEnoughMembers, match="degree 2 takes 3 members"):
            copy_notes.options(timeout=MOMENT)(source, target)
    copy_notes(notes, copy)


def test_an_atomic_function_with_a_degree_of_its_own(group: orca.Group) -> None:
    notes, copy = group.share(Notes, "notes"), group.share(Notes, "copy")
    with pytest.raises(orca.NotEnoughMembers, match="degree 1 takes 2 members"):
        copy_on_two.options(timeout=MOMENT)(notes, copy)
    assert notes.note("a") == 1
