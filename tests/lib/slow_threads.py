"""Two members of this process whose order is in memory, and an operation that does not end on some threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orcalike as orca
from tests.lib.processes import DEADLINE

slowed: list[threading.Thread | None] = []
"""The threads on which a step does not end by itself."""

began, ends = threading.Event(), threading.Event()


@orca.shared
class Slow:
    """Its steps take until `ends` is set on a thread that is slowed."""

    def __init__(self) -> None:
        self.steps = 0

    @orca.write
    def step(self) -> None:
        """Go one step."""
        self.steps += 1
        if threading.current_thread() in slowed:  # orca: unchecked
            began.set()  # orca: unchecked
            ends.wait(DEADLINE)  # orca: unchecked


@contextmanager
def two_members(folder: Path) -> Iterator[tuple[orca.Group, orca.Group]]:
    """The groups of both; at the end every step goes on."""
    slowed.clear()
    began.clear()
    ends.clear()
    with ExitStack() as stack:
        first = stack.enter_context(orca.join(listen=f"unix:{folder}/group"))
        second = stack.enter_context(orca.join(seeds=first.address))
        stack.callback(ends.set)
        assert "RING" in first._session.stack.dump()
        yield first, second
