"""In which order ranks are stopped."""

from __future__ import annotations

import signal
import time
from types import SimpleNamespace
from typing import Any

import pytest

from orcalike.launcher.stopping import INTERRUPT, Stopping
from orcalike.launcher.timers import Timers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_rank_that_is_the_oldest_member_is_stopped_last(number: signal.Signals) -> None:
    """So those that are left are a majority at each moment, and say nothing of a group that is blocked."""
    seen: list[tuple[int, signal.Signals]] = []

    class Child:
        def __init__(self, rank: int) -> None:
            self.rank = rank

        def signal(self, sent: signal.Signals) -> None:
            seen.append((self.rank, sent))

    table: Any = SimpleNamespace(ranks={rank: Child(rank) for rank in (1, 0, 3)})
    Stopping(table, Timers(), 1.0).stop((number,))
    assert [rank for rank, sent in seen if sent == number] == [3, 1, 0]
    stopped = [rank for rank, sent in seen if sent == signal.SIGCONT]
    assert stopped == ([] if number == signal.SIGKILL else [3, 1, 0]), "a stopped one must see it"


def test_a_rank_that_does_not_end_gets_a_stronger_signal_after_each_grace_period() -> None:
    seen: list[signal.Signals] = []
    table: Any = SimpleNamespace(ranks={0: SimpleNamespace(signal=seen.append)})
    timers = Timers()
    Stopping(table, timers, 5.0).stop(INTERRUPT)
    for number in INTERRUPT:
        assert [each for each in seen if each != signal.SIGCONT] == [number]
        seen.clear()
        timers.expire(time.monotonic() + 4.0)
        assert seen == [], "its grace period is not over"
        timers.expire(time.monotonic() + 6.0)
    assert seen == [], "there is none that is stronger than the last"
