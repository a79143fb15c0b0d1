"""A group of this process one of whose calls waits, so that it watches the others (ADR-26)."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import orcalike as orca


@orca.shared
class Gate:
    """Those that pass wait until it is open."""

    is_open = False

    @orca.write
    def open(self) -> None:
        """Let all through."""
        self.is_open = True

    @orca.read
    def wait(self) -> bool:
        """Wait until it is open."""
        return self.is_open

    @wait.when
    def _(self) -> bool:
        return self.is_open


NUMBERS = itertools.count()
"""Of the gates: each one is opened once."""


@contextmanager
def held_up(group: orca.Group) -> Iterator[None]:
    """A thread of this member waits meanwhile, for any member's write as far as it knows."""
    gate = group.share(Gate, f"gate {next(NUMBERS)}")
    waiting = threading.Thread(target=gate.wait, name="held up")
    waiting.start()
    try:
        yield
    finally:
        gate.open()
        waiting.join()
