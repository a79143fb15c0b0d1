"""An object's turn to be packed for a joiner comes on whatever thread has run its lock queue."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import orcalike as orca
from orcalike.runtime import giving, state_hooks, state_parts
from orcalike.runtime.replica import Replica
from orcalike.runtime.time_budget import TimeBudget
from orcalike.transport.drivers.driver import Driver

LIMIT = 30

entered, ends = threading.Event(), threading.Event()


@orca.shared
class Slow:
    """A pop-up write that takes as long as the test wants."""

    def __init__(self) -> None:
        self.count = 0

    @orca.write(popup=True)
    def add_slowly(self) -> None:
        entered.set()  # orca: unchecked
        ends.wait(LIMIT)  # orca: unchecked
        self.count += 1

    @orca.write
    def add(self) -> int:
        self.count += 1
        return self.count


def test_what_a_pop_up_has_held_up_is_packed_where_the_stack_runs(
    group: orca.Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads do not make the parts of one snapshot: a joiner would get none."""
    runtime, threads = group._runtime, list[threading.Thread]()
    packs, goes_on, given = threading.Event(), threading.Event(), list[bytes]()
    snapshots = list[giving.Snapshot]()
    entered.clear()
    ends.clear()

    def give_slowly(budget: TimeBudget, driver: Driver, replica: Replica) -> object:
        packs.set()
        goes_on.wait(LIMIT)
        return state_hooks.give_state(budget, driver, replica)

    def start_thread(function: Callable[[], None]) -> None:
        threads.append(threading.Thread(target=function))
        threads[-1].start()

    def begin(now: int) -> None:
        snapshot = runtime.donor.give()
        snapshots.append(snapshot)
        ends.set()
        while threads[0].is_alive() and not packs.is_set():
            threads[0].join(0.01)
        try:
            given.append(next(snapshot))
            assert next(snapshot) == b"", "the object is not packed yet"
        finally:
            goes_on.set()

    monkeypatch.setattr(state_parts, "give_state", give_slowly)
    runtime.start_thread = start_thread
    slow = group.share(Slow, "slow")
    call = slow.add_slowly.nowait()
    assert entered.wait(LIMIT)
    runtime.sender.driver.call(begin)
    threads[0].join(LIMIT)
    (snapshot,) = snapshots
    runtime.sender.driver.call(lambda now: given.extend(snapshot))
    assert call.result(LIMIT) is None
    assert slow.add.options(timeout=LIMIT)() == 2, "nothing holds the object"
    assert snapshot.failure is None
    assert all(given)
    assert not snapshot.held
