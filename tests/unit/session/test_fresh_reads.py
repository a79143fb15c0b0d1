"""A read over shared memory sees what was written before it, though another thread is about to apply that."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import orcalike as orca
from tests.lib.processes import DEADLINE
from tests.lib.shared_classes import Counter

held_up: list[threading.Thread | None] = []
began, ends = threading.Event(), threading.Event()


@orca.shared
class Slow:
    """Its operation takes long where a thread is held up."""

    def __init__(self) -> None:
        self.steps = 0

    @orca.write
    def step(self) -> None:
        self.steps += 1
        if threading.current_thread() in held_up:  # orca: unchecked
            began.set()  # orca: unchecked
            ends.wait(DEADLINE)  # orca: unchecked


def test_what_was_taken_of_the_order_has_run_before_a_read(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(orca.join(listen=f"unix:{tmp_path}/group"))
        second = stack.enter_context(orca.join(seeds=first.address))
        stack.callback(ends.set)
        assert "RING" in first._session.stack.dump()
        _, counter = first.share(Slow, "slow"), first.share(Counter, "counter")
        slow, other = second.share(Slow, "slow"), second.share(Counter, "counter")
        held_up.append(first._session.pump.thread)
        slow.step.nowait()
        other.add.nowait(5)
        second.fence()
        assert began.wait(DEADLINE)
        assert counter.get() == 5
