"""A fault of one process is found there, and is no other's (I24, H10).

`MemoryError`, `RecursionError` and what is no `Exception` are no results that replicas share: the
replica that met one serves no more and names the operation; the others go on.
"""

from __future__ import annotations

from typing import Any

import pytest

import orcalike as orca
from orcalike.errors import ReplicaDivergence
from orcalike.runtime.codes import Code
from orcalike.session.group_calls import Share, Whole
from tests.lib.shared_classes import Counter
from tests.protocol.sim_runtime import Participant
from tests.protocol.test_runtime_sim import Stage, replica_of

pytestmark = pytest.mark.usefixtures("order")

victim: Any = None
"""The replica that meets the fault, and which."""


@orca.shared
class Struck:
    """Counts; one replica may meet a fault."""

    def __init__(self) -> None:
        self.count = 0

    @orca.read
    def get(self) -> int:
        return self.count

    @orca.write
    def add(self) -> int:
        strike(self)
        self.count += 1
        return self.count

    @orca.write
    def add_when(self, least: int) -> int:
        strike(self)
        self.count += 1
        return self.count

    @add_when.when
    def _(self, least: int) -> bool:
        return self.count >= least

    @orca.write(popup=True)
    def add_slowly(self) -> int:
        strike(self)
        self.count += 1
        return self.count


def strike(shared: Struck) -> None:
    if victim is not None and shared is victim[0]:
        raise victim[1]("planted")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Three members that share `struck`."""
    monkeypatch.setattr(f"{__name__}.victim", None)
    stage = Stage(3)
    for number in (1, 2):
        stage.admit(number)
    stage.share(stage.participants[0], Struck, "struck")
    return stage


def here(participant: Participant) -> Any:
    return replica_of(participant, "struck").object


@pytest.mark.parametrize("fault", [MemoryError, RecursionError, ImportError, SystemExit])
@pytest.mark.parametrize("operation", ["add", "add_when", "add_slowly"])
@pytest.mark.parametrize("caller", [0, 2])
def test_the_replica_that_meets_a_fault_serves_no_more(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    fault: type[BaseException],
    operation: str,
    caller: int,
) -> None:
    odd = stage.participants[2]
    monkeypatch.setattr(f"{__name__}.victim", (here(odd), fault))
    call = getattr(here(stage.participants[caller]), operation)
    invocation = call.nowait(*([0] if operation == "add_when" else []))
    stage.settle()
    if caller == 2:
        assert invocation.done()
        assert isinstance(invocation.exception(), ReplicaDivergence)
    else:
        assert invocation.result() == 1
    assert len(odd.faults) == 1
    assert f"Struck.{operation}" in odd.faults[0]
    assert fault.__name__ in odd.faults[0]
    refused: list[Any] = [
        here(odd).add.nowait,
        Whole(odd.runtime, Code.FENCE).nowait,
        lambda: Share(odd.runtime).nowait(Counter, "counter"),
    ]
    for refuse in refused:
        with pytest.raises(ReplicaDivergence, match=f"Struck.{operation}"):
            refuse()
    monkeypatch.setattr(f"{__name__}.victim", None)
    for participant in stage.participants[:2]:
        added = here(participant).add.nowait()
        stage.settle()
        assert added.done()
        assert not participant.faults
    assert [here(participant).count for participant in stage.participants[:2]] == [3, 3]


@pytest.mark.parametrize("operation", ["add", "add_when", "add_slowly"])
def test_an_ordinary_exception_is_no_fault(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    for participant in stage.participants:
        monkeypatch.setattr(f"{__name__}.victim", (here(participant), ValueError))
        call = getattr(here(stage.participants[1]), operation)
        call.nowait(*([0] if operation == "add_when" else []))
        stage.settle()
    assert not any(participant.faults for participant in stage.participants)


def test_a_replica_that_met_a_fault_shows_nothing_and_gives_no_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its reads would show a state that only it has, and so would a joiner."""
    monkeypatch.setattr(f"{__name__}.victim", None)
    stage = Stage(4)
    for number in (1, 2):
        stage.admit(number)
    stage.share(stage.participants[0], Struck, "struck")
    odd = stage.participants[0]
    monkeypatch.setattr(f"{__name__}.victim", (here(odd), MemoryError))
    here(stage.participants[1]).add.nowait()
    stage.settle()
    with pytest.raises(ReplicaDivergence, match=r"Struck\.add of 'struck'"):
        here(odd).get()
    assert here(stage.participants[1]).get() == 1
    with pytest.raises(ReplicaDivergence, match=r"Struck\.add"):
        odd.runtime.donor.give()
    monkeypatch.setattr(f"{__name__}.victim", None)
    joiner = stage.admit(3)
    stage.settle()
    assert here(joiner).count == 1
