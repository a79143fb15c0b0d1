"""What a seed stands for in the simulator of runtimes, and what shows its history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from orcalike.transport.drivers.sim import Delays
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.view import View
from orcalike.transport.wire.message import Message
from tests.lib import orders, ring_scenarios
from tests.protocol.model import Cast

MS = 1_000_000
"""A millisecond, in ns."""
LAYERS = {
    "TOTAL": ["TOTAL", "TOTAL(packets=4)", "TOTAL(packets=16)"],
    "RING": list(ring_scenarios.LAYERS),
}
"""By order: some that are full soon."""


@dataclass(frozen=True, slots=True)
class Scene:
    """How one run is set up; all of it follows from the seed."""

    seed: int
    size: int
    witness: bool
    stack: str
    delays: Delays
    acts: int
    span: int
    leavers: frozenset[int]
    late: frozenset[int]
    """The members that learn of `Late` in the middle of the run."""
    readers: int
    """How often a reader in another thread holds a mutex for a while."""
    piece: int = 65_536
    """Bytes of a piece of the state."""
    kept: int = 1 << 24
    """Bytes of objects that a donor packs before their turn; a write to more than that waits."""

    @classmethod
    def draw(cls, seed: int) -> Scene:
        """The scene of a seed, over the order of the test."""
        rng, sizes = Random(f"{seed} scene"), Random(f"{seed} sizes")
        size = rng.choice([2, 2, 3, 3, 4, 5, 6])
        witness = rng.random() < 0.5
        pack = rng.choice(["PACK", "PACK(size=64)", "PACK(messages=8)", "PACK(size=200)"])
        pack = sizes.choice(
            [pack, pack[:-1] + ",fragment=40)" if "(" in pack else "PACK(fragment=9)"]
        )
        layer = rng.choice(LAYERS[orders.usual])
        leaving, late = rng.choice([0.0, 0.3, 0.8]), rng.choice([0.0, 0.0, 0.5])
        others = range(2 if witness else 1, size + witness)
        return cls(
            seed=seed,
            size=size + witness,
            witness=witness,
            stack=f"{pack}:XFER:{layer}:MBRSHIP:COM:sim",
            delays=Delays(
                least=rng.choice([1_000, 10_000, 200_000]),
                mean=rng.choice([1_000, 50_000, 400_000]),
            ),
            acts=rng.choice([30, 100, 300]),
            span=rng.choice([2, 8, 30]) * MS,
            leavers=frozenset(i for i in others if rng.random() < leaving),
            late=frozenset(i for i in range(size + witness) if rng.random() < late),
            readers=rng.choice([0, 0, 10]),
            piece=sizes.choice([80, 100, 1_000, 65_536]),
            kept=sizes.choice([0, 30, 300, 1 << 24]),
        )


class Spy(Layer):
    """Between a stack and its runtime: shows what is delivered, and where."""

    def __init__(self, core: Core, see: Callable[[Cast | View], None]) -> None:
        super().__init__(core)
        self.see = see
        self.installed: View | None = None

    def up_cast(self, message: Message) -> None:
        assert self.installed is not None
        at = message.source
        sender = self.installed.members[at] if at >= 0 else self.core.departed[-2 - at]
        place = (message.seqno, message.index)
        self.see(Cast(*place, sender.incarnation, message.ticket, message.stamp, message.body))
        self.above.up_cast(message)

    def up_view(self, view: View, cut: bytes) -> None:
        self.installed = view
        self.see(view)
        self.above.up_view(view, cut)
