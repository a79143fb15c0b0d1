"""An `__init__` that raises, if not all members have the class: all go on with one object table."""

from __future__ import annotations

import pytest

import orcalike as orca
from orcalike.runtime import classes
from orcalike.runtime.codes import Code
from orcalike.runtime.object_table import ObjectTable
from orcalike.session.group_calls import Share
from tests.lib.shared_classes import Counter
from tests.protocol.sim_runtime import Participant
from tests.protocol.test_runtime_sim import Stage

pytestmark = pytest.mark.usefixtures("order")


@orca.shared
class Late:
    """A class that some members learn later; no object of it starts below 0."""

    def __init__(self, start: int) -> None:
        if start < 0:
            raise ValueError("it starts below 0")
        self.total = start

    @orca.write
    def add(self, by: int) -> int:
        self.total += by
        return self.total


def learn(participant: Participant) -> None:
    """Its program imports the class."""
    participant.ignorant = False
    info = classes.lookup_class(Late)
    assert info is not None
    participant.node.call(lambda now: participant.runtime.table.declared(info))


def table(participant: Participant) -> tuple[dict[str, int], list[str | None]]:
    """The names of the objects, and what has each number."""
    replicas = participant.runtime.replicas
    return participant.runtime.table.names, [None if r is None else r.name for r in replicas]


def test_a_member_without_the_class_has_the_same_numbers() -> None:
    stage = Stage(2, 1)
    first, second = stage.participants
    stage.admit(1)
    failed = Share(first.runtime).nowait(Late, "late", -1)
    stage.settle()
    with pytest.raises(ValueError, match="below 0"):
        failed.result()
    assert table(first) == table(second)
    late = stage.share(first, Late, "late", 5)
    counter = stage.share(first, Counter, "counter")
    counter.add.nowait(3)
    late.add.nowait(1)
    stage.settle()
    learn(second)
    stage.settle()
    assert table(first) == table(second)
    assert stage.find(second, Counter, "counter").result().get() == 3
    assert stage.find(second, Late, "late").result().total == 6


def test_one_that_is_learned_before_it_is_dropped_fails_there_too() -> None:
    stage = Stage(2, 1)
    first, second = stage.participants
    stage.admit(1)
    Share(first.runtime).nowait(Late, "late", -1)
    learn(second)
    stage.settle()
    assert table(first) == table(second) == ({}, [None, None])


def test_a_find_waits_for_the_object_that_comes_after_it() -> None:
    stage = Stage(2)
    first, second = stage.participants
    stage.admit(1)
    failed = Share(first.runtime).nowait(Late, "late", -1)
    also = Share(second.runtime).nowait(Late, "late", -1)
    found = stage.find(second, Late, "late")
    assert not found.done()
    for invocation in (failed, also):
        assert isinstance(invocation.exception(), ValueError)
    stage.share(first, Late, "late", 7)
    assert found.result().total == 7
    assert table(first) == table(second)


@pytest.mark.parametrize("ignorant", [False, True])
def test_a_joiner_in_the_moment_between_has_the_same_numbers(
    ignorant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has failed, and its creator has not dropped it yet."""
    stage = Stage(3, *([1, 2] if ignorant else []))
    first, second, joiner = stage.participants
    stage.admit(1)
    with monkeypatch.context() as patch:
        patch.setattr(ObjectTable, "_end_in_order", lambda self, replica: None)
        Share(first.runtime).nowait(Late, "late", -1)
        stage.settle()
        stage.admit(2, through=1)
    assert table(first) == table(second) == table(joiner) == ({"late": 1}, [None, "late"])
    first.runtime.sender.post(Code.DROP, (1,), "drop")
    counter = stage.share(first, Counter, "counter")
    counter.add.nowait(3)
    late = stage.share(first, Late, "late", 5)
    late.add.nowait(1)
    stage.settle()
    for participant in (second, joiner):
        learn(participant)
    stage.settle()
    assert table(first) == table(second) == table(joiner)
    assert stage.find(joiner, Counter, "counter").result().get() == 3
    assert stage.find(joiner, Late, "late").result().total == 6
    assert not joiner.faults
