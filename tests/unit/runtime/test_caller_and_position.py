"""`caller()` and `position()`: whose call runs, and where it stands in the order."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Generic, TypeVar

import pytest

import orcalike as orca

T = TypeVar("T")
DEADLINE = 100.0


@orca.shared
class Visits(Generic[T]):
    """The callers, by every way in which an operation runs; it is false while there are none."""

    def __init__(self) -> None:
        self.creator = orca.caller()
        self.visits: list[tuple[str, orca.Member, int]] = []
        self.open = False
        self.hooks: list[str] = []

    @orca.read
    def __len__(self) -> int:
        return len(self.visits)

    @orca.write
    def enter(self) -> int:
        self.visits.append(("enter", orca.caller(), orca.position()))
        return orca.position()

    @orca.write(popup=True)
    def enter_slowly(self) -> None:
        self.visits.append(("slowly", orca.caller(), orca.position()))

    @orca.write
    def enter_when_open(self) -> int:
        self.visits.append(("open", orca.caller(), orca.position()))
        return orca.position()

    @enter_when_open.when
    def _(self) -> bool:
        return self.open

    @orca.write
    def set_open(self) -> None:
        self.open = True

    @orca.write
    def set_creator(self, member: orca.Member) -> None:
        self.creator = member

    @orca.read
    def look(self) -> orca.Member:
        return orca.caller()

    @orca.read
    def look_at_position(self) -> int:
        return orca.position()

    @orca.read
    def get(self) -> list[tuple[str, orca.Member, int]]:
        return list(self.visits)

    @orca.read
    def get_creator(self) -> orca.Member:
        return self.creator

    def member_left(self, member: orca.Member) -> None:
        for function in (orca.caller, orca.position):
            try:
                function()
            except RuntimeError as error:
                self.hooks.append(str(error))

    @orca.read
    def get_hooks(self) -> list[str]:
        return list(self.hooks)

    @get_hooks.when
    def _(self) -> bool:
        return bool(self.hooks)


@orca.atomic
def enter_both(first: Visits[int], second: Visits[int]) -> None:
    first.enter()
    second.enter()


def test_the_caller_is_the_same_at_each_member(tmp_path: Path) -> None:
    address = f"unix:{tmp_path / 'group'}"
    with orca.join(listen=address) as one:
        at_one = one.share(Visits[int], "visits")
        with orca.join(seeds=address, timeout=DEADLINE) as two:
            at_two = two.find(Visits[int], "visits", timeout=DEADLINE)
            assert at_two.get_creator() == one.me
            waiting = at_two.enter_when_open.nowait()
            at_two.enter()
            at_one.enter()
            at_two.enter_slowly()
            enter_both(at_one, one.share(Visits[int], "other"))
            with orca.join(seeds=address, timeout=DEADLINE) as three:
                # A call that waits goes to the joiner with the state, with its caller.
                at_three = three.find(Visits[int], "visits", timeout=DEADLINE)
                at_one.set_open()
                waited = waiting.result(DEADLINE)
                for group in (one, two, three):
                    group.fence(timeout=DEADLINE)
                seen = at_one.get()
                assert at_two.get() == at_three.get() == seen
                assert [(how, member) for how, member, _ in seen] == [
                    ("enter", two.me),
                    ("enter", one.me),
                    ("slowly", two.me),
                    ("enter", one.me),
                    ("open", two.me),
                ]
                positions = [position for _, _, position in seen]
                assert positions[:-1] == sorted(set(positions[:-1]))
                assert waited == positions[-1] < positions[0]  # that at which it was ordered
                assert at_three.look() == three.me
                assert at_one.look() == one.me
            assert len(at_one.get_hooks()) == 2
            assert "no member has called it" in at_one.get_hooks()[0]


def test_a_read_on_a_thread_of_its_own(group: orca.Group) -> None:
    visits = group.share(Visits[int], "visits")
    seen: list[orca.Member] = []
    thread = threading.Thread(target=lambda: seen.append(visits.look()))
    thread.start()
    thread.join(DEADLINE)
    assert seen == [group.me]
    with pytest.raises(RuntimeError, match="in a read"):
        visits.look_at_position()


def test_outside_of_a_group() -> None:
    visits: Visits[int] = Visits()
    assert visits.enter() == 0
    assert visits.look() == orca.caller()
    assert (orca.caller().rank, orca.caller().address, orca.position()) == (0, "", 0)


def test_members_travel(group: orca.Group) -> None:
    visits = group.share(Visits[str], "visits")
    visits.set_creator(group.me)
    assert visits.get_creator() == group.me
    assert visits.get_creator() is not group.me


def test_an_object_that_is_false_is_made_once(group: orca.Group) -> None:
    visits = group.share(Visits[int], "visits")
    assert not visits
    assert group.share(Visits, "visits") is visits
    assert group.find(Visits[int], "visits") is visits
