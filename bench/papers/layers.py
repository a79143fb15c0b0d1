"""Layers for measuring: what layers cost, where the time goes, and no order (H86, A54, H93).

    NULL      passes everything through; it overrides nothing
    HEADER    pushes 4 bytes on the way down and pops them on the way up, as fragmentation does
    PROBE     tells the meter what layer is entered, and when it is left again
    LOOSE     stands on MBRSHIP in the place of TOTAL: no order but each sender's, and no promise
              that members that go from view to view have the same messages (H93)

`make_known` makes them known to stack strings. They promise nothing, and all but LOOSE need nothing.
"""

from __future__ import annotations

from time import perf_counter_ns

from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.stacks import register
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message


class Meter:
    """How long each layer ran, without those that it called; one input runs at a time."""

    def __init__(self) -> None:
        self.spent: dict[str, int] = {}
        """ns by layer; what is outside of all of them is in no layer's sum."""
        self.crossings: dict[str, int] = {}
        """How often it was entered, and entered another one."""
        self._inside: list[str] = []
        self._since = 0

    def enter(self, layer: str) -> None:
        """From here on `layer` runs."""
        now = perf_counter_ns()
        if self._inside:
            caller = self._inside[-1]
            self.spent[caller] += now - self._since
            self.crossings[caller] += 1
        self._inside.append(layer)
        self.crossings[layer] = self.crossings.get(layer, 0) + 1
        self.spent.setdefault(layer, 0)
        self._since = perf_counter_ns()

    def leave(self) -> None:
        """It has returned to its caller."""
        now = perf_counter_ns()
        self.spent[self._inside.pop()] += now - self._since
        self._since = perf_counter_ns()

    def seen(self) -> tuple[dict[str, int], dict[str, int]]:
        """`spent` and `crossings` as they are now; any thread may ask."""
        return dict(self.spent), dict(self.crossings)

    def corrected(self, before: tuple[dict[str, int], dict[str, int]]) -> dict[str, float]:
        """Seconds by layer since `before`, less what the probes themselves took.

        Two probes in a row have nothing between them: what the lower one is said to have taken,
        `PROBE`, is the cost of being entered and of entering another one.
        """
        after = self.seen()
        spent, crossings = (
            {layer: count - old.get(layer, 0) for layer, count in new.items()}
            for old, new in zip(before, after, strict=True)
        )
        probe = spent.get("PROBE", 0) / max(1, crossings.get("PROBE", 0))
        return {
            layer: max(0.0, spent[layer] - probe * crossings[layer]) / 1e9
            for layer in spent
            if layer != "PROBE"
        }


METER = Meter()
"""The process's own."""


class _Passing(Layer):
    """What the three have in common: they take no parameters."""

    def __init__(self, core: Core, config: StackConfig, me: Member) -> None:
        super().__init__(core)


class Null(_Passing):
    """Passes everything through."""

    name = "NULL"


class Header(_Passing):
    """Has a header of its own on each message."""

    name = "HEADER"

    def cast(self, message: Message) -> None:
        """To the view."""
        message.push_header(b"head")
        self.below.cast(message)

    def send(self, message: Message, members: tuple[int, ...]) -> None:
        """To some of it."""
        message.push_header(b"head")
        self.below.send(message, members)

    def contact(self, message: Message, address: str) -> None:
        """To a non-member."""
        message.push_header(b"head")
        self.below.contact(message, address)

    def up_cast(self, message: Message) -> None:
        """From a member, to all."""
        message.pop_header(4)
        self.above.up_cast(message)

    def up_send(self, message: Message) -> None:
        """From a member, or a non-member."""
        message.pop_header(4)
        self.above.up_send(message)


class Probe(_Passing):
    """Stands between two layers, and tells the meter when a message goes from one to the other."""

    name = "PROBE"

    def cast(self, message: Message) -> None:
        """To the view."""
        METER.enter(self.below.name)
        self.below.cast(message)
        METER.leave()

    def send(self, message: Message, members: tuple[int, ...]) -> None:
        """To some of it."""
        METER.enter(self.below.name)
        self.below.send(message, members)
        METER.leave()

    def up_cast(self, message: Message) -> None:
        """From a member, to all."""
        METER.enter(self.above.name)
        self.above.up_cast(message)
        METER.leave()

    def up_send(self, message: Message) -> None:
        """From a member."""
        METER.enter(self.above.name)
        self.above.up_send(message)
        METER.leave()


class Loose(_Passing):
    """Casts of each sender in its order, by the shortest way; it agrees to every view."""

    name = "LOOSE"
    needs = frozenset({"VIEWS", "FIFO"})

    def up_flush(self, failed: object) -> None:
        """A view is to change: nothing is held here."""
        self.below.flush_ok(b"")

    def up_held(self) -> bytes:
        """Nothing."""
        return b""

    def up_missing(self, report: bytes, before: bool) -> list[bytes]:
        """What another one lacks: nothing."""
        return []

    def up_supply(self, piece: bytes) -> None:
        """What was lacking here: nothing."""

    def up_flush_ok(self, reports: dict[int, bytes], view: View, ends: bool) -> bytes:
        """The cut: none."""
        return b""

    def up_cut(self, cut: bytes) -> bool:
        """All of it is here."""
        return True


def make_known() -> None:
    """From here on stack strings of this process may name them."""
    for layer in (Null, Header, Probe, Loose):
        register(layer)
