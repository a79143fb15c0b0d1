"""A read over shared memory sees what was written before it, though another thread is about to apply that."""

from __future__ import annotations

from pathlib import Path

from tests.lib.processes import DEADLINE
from tests.lib.shared_classes import Counter
from tests.lib.slow_threads import Slow, began, slowed, two_members


def test_what_was_taken_of_the_order_has_run_before_a_read(tmp_path: Path) -> None:
    with two_members(tmp_path) as (first, second):
        _, counter = first.share(Slow, "slow"), first.share(Counter, "counter")
        slow, other = second.share(Slow, "slow"), second.share(Counter, "counter")
        slowed.append(first._session.pump.thread)
        slow.step.nowait()
        other.add.nowait(5)
        second.fence()
        assert began.wait(DEADLINE)
        assert counter.get() == 5
