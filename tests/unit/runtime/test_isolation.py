"""Groups of one process have nothing in common (I32); what goes wrong in one object stays there (I26)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.errors import NestedWrite, NotSerializable
from tests.lib.shared_classes import Counter, Gate, Journal, transfer

Groups = tuple[orca.Group, orca.Group]


@pytest.fixture
def groups() -> Iterator[Groups]:
    """Two groups of one process."""
    with orca.join("one") as one, orca.join("two") as two:
        yield one, two


def test_one_name_is_an_object_in_each_group(groups: Groups) -> None:
    counters = [group.share(Counter, "counter", start) for start, group in enumerate(groups)]
    assert counters[0] is not counters[1]
    counters[0].add(10)
    counters[1].add(100)
    assert [counter.get() for counter in counters] == [10, 101]
    groups[0].drop(counters[0])
    with pytest.raises(orca.ObjectDropped):
        counters[0].add()
    assert counters[1].add() == 102


def test_an_object_of_another_group_is_no_argument(groups: Groups) -> None:
    """A reference is a number in its own group's table: in another one it would be another object."""
    one, two = groups
    journal, mine = one.share(Journal, "journal"), one.share(Counter, "mine")
    theirs = two.share(Counter, "theirs")
    for argument in (theirs, [theirs], {"a": (theirs,)}):
        with pytest.raises(NotSerializable):
            journal.refer_to(argument)
    with pytest.raises(ValueError, match="different groups"):
        transfer(mine, theirs, 1)
    journal.refer_to(mine)
    assert journal.referred() is mine
    assert (mine.get(), theirs.get()) == (0, 0)


@orca.shared
class Meddler:
    """Writes to an object that it knows from elsewhere."""

    def __init__(self) -> None:
        self.count = 0

    @orca.write
    def meddle(self) -> None:
        self.count += 1
        target.add()


target: Counter


def test_an_operation_writes_to_no_object_of_another_group(groups: Groups) -> None:
    global target
    one, two = groups
    meddler, target = one.share(Meddler, "meddler"), two.share(Counter, "counter")
    with pytest.raises(NestedWrite):
        meddler.meddle()
    assert target.get() == 0


def test_leaving_one_group_leaves_the_other_alone() -> None:
    with orca.join("one") as one:
        mine = one.share(Counter, "counter")
        with orca.join("two") as two:
            theirs = two.share(Counter, "counter")
            theirs.add(5)
        with pytest.raises(orca.GroupClosed):
            theirs.add()
        assert theirs.get() == 5
        assert mine.add() == 1


def test_groups_at_addresses_of_their_own_are_apart(tmp_path: Path) -> None:
    """Two members of each, all in one process, that name their objects alike."""
    with (
        orca.join("one", listen=f"unix:{tmp_path}/one") as one,
        orca.join("two", listen=f"unix:{tmp_path}/two") as two,
        orca.join("one", seeds=one.address, timeout=60) as one_more,
        orca.join("two", seeds=two.address, timeout=60) as two_more,
    ):
        for start, group in ((0, one), (100, two)):
            group.share(Counter, "counter", start)
        for start, group in ((0, one_more), (100, two_more)):
            counter = group.find(Counter, "counter")
            assert counter.add() == start + 1
        assert [group.size for group in (one, two)] == [2, 2]


def test_a_call_that_waits_too_long_says_which_it_was(group: orca.Group) -> None:
    counter = group.share(Counter, "counter")
    with pytest.raises(orca.InvocationTimeout) as raised:
        counter.take.options(timeout=0.05)(5)
    assert "Counter.take" in str(raised.value)
    assert raised.value.outcome == "withdrawn"
    assert counter.add(7) == 7


def test_what_never_ends_holds_up_its_own_object_alone(group: orca.Group) -> None:
    """An operation in a pop-up thread; a call that waits for it says which object that is (I26)."""
    journal, counter = group.share(Journal, "journal"), group.share(Counter, "counter")
    with Gate("stuck") as gate:
        stuck = journal.note_slowly.nowait("stuck")
        gate.wait_until_reached()
        assert [counter.add() for _ in range(3)] == [1, 2, 3]
        behind = journal.note.nowait("behind")
        with pytest.raises(orca.InvocationTimeout) as raised:
            journal.note.options(timeout=0.05)("late")
        assert "Journal.note" in str(raised.value)
        assert "'journal'" in str(raised.value)
        assert not stuck.done()
        assert not behind.done()
        assert group.share(Counter, "another").add() == 1
        gate.open()
        assert behind.result(30) is None
    assert [event for event in journal.history() if "joined" not in event][:2] == [
        *("stuck", "behind")
    ]
