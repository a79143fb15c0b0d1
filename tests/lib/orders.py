"""Over which order a test's groups are: with a sequencer, or in shared memory.

What both promise is tested over both, by the fixture `order`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

ORDERS = ("TOTAL", "RING")

SEQUENCED = pytest.mark.parametrize("order", ["TOTAL"])
"""Marks a test of what only a sequencer does: its frames, its packets that are tentative."""

IN_MEMORY = ("--stack", "PACK:XFER:RING:MBRSHIP:COM:unix")
OVER_RANK = ("--sequencer", "rank")
OVER_WITNESS = ("--sequencer", "witness")
"""The flags of `orcalike run` for an order in memory, and for each sequencer."""

usual = "TOTAL"
"""The layer that orders in groups for which a test names no stack; `over` sets it."""


@contextmanager
def over(layer: str) -> Iterator[None]:
    """Groups that are made meanwhile have their order by this layer."""
    global usual
    before, usual = usual, layer
    try:
        yield
    finally:
        usual = before


def manual_stack() -> str:
    """That of groups whose frames are moved by hand: without PACK, so that each cast is a packet."""
    return f"XFER:{usual}:MBRSHIP:COM:sim"


def simulated_stack(*above: str) -> str:
    """That of whole runtimes in the simulator, with these layers above the state."""
    return ":".join(["PACK", *above, f"XFER:{usual}:MBRSHIP:COM:sim"])
