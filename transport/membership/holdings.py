"""What is known outside of the agreement: what the layers above hold of the view that ends, and make of it. It asks, and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from orcalike.transport.view import View


class Processes(Protocol):
    """What the kernel says of the processes of other members."""

    def is_ending(self, incarnation: int) -> bool:
        """Whether that one is at its end, which will be seen; False if unknown."""


class Holdings(Protocol):
    """What the layers above hold, and make of it; asked in a step, and changed by none but `say_alone`."""

    def missing(self, report: bytes) -> list[bytes]:
        """The packets held here that the member that reported so lacks."""

    def check(self, report: bytes | None, cut: bytes | None) -> None:
        """Raises ProtocolError if no member can have reported so, or made that cut."""

    def cut_of(self, reports: dict[int, bytes], view: View, ends: bool) -> bytes:
        """The cut before `view` that follows from the members' reports; `ends`: no state goes on to it."""

    def has_cut(self, cut: bytes) -> bool:
        """Whether all of the cut is here; else the event `CutHeld` comes when it is."""

    def has_state(self) -> int:
        """What is known here of the application's state, a `State`."""

    def degree_here(self) -> int:
        """R, as far as it is known here (H2)."""

    def vouches(self, incarnation: int) -> bool:
        """Whether a member whose process has ended has not ended this view without this one's acceptance."""

    def is_ending(self, incarnation: int) -> bool:
        """Whether the process of a member is at its end, as the kernel says, so that it will be seen to end."""

    def say_alone(self, left_out: tuple[int, ...]) -> None:
        """This member is about to decide, and these incarnations have not accepted, and may live."""


class Above(Protocol):
    """The upcalls of a layer that this needs."""

    def up_missing(self, report: bytes, before: bool, /) -> list[bytes]: ...

    def up_check(self, report: bytes | None, cut: bytes | None, /) -> None: ...

    def up_flush_ok(self, reports: dict[int, bytes], view: View, ends: bool, /) -> bytes: ...

    def up_cut(self, cut: bytes, /) -> bool: ...

    def up_has_state(self) -> int: ...

    def up_vouches(self, incarnation: int, /) -> bool: ...

    def up_alone(self, left_out: tuple[int, ...], /) -> None: ...


class Core(Protocol):
    """What the layers of a stack share."""

    @property
    def processes(self) -> Processes | None:
        """None if the driver watches none."""


class Layer(Protocol):
    """The layer that the agreement belongs to."""

    @property
    def core(self) -> Core: ...

    @property
    def above(self) -> Above: ...

    @property
    def least(self) -> int: ...


class HeldAbove:
    """The `Holdings` of the layers above one."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer

    def missing(self, report: bytes) -> list[bytes]:
        """Of the view that ends."""
        return self._layer.above.up_missing(report, False)

    def missing_before(self, report: bytes) -> list[bytes]:
        """The same of the view before it."""
        return self._layer.above.up_missing(report, True)

    def check(self, report: bytes | None, cut: bytes | None) -> None:
        """As `Holdings` has it, and all that follows."""
        self._layer.above.up_check(report, cut)

    def cut_of(self, reports: dict[int, bytes], view: View, ends: bool) -> bytes:
        """By the layer that orders."""
        return self._layer.above.up_flush_ok(reports, view, ends)

    def has_cut(self, cut: bytes) -> bool:
        """Each layer above is asked."""
        return self._layer.above.up_cut(cut)

    def has_state(self) -> int:
        """By the layer that transfers it."""
        return self._layer.above.up_has_state()

    def degree_here(self) -> int:
        """As the application has said it."""
        return self._layer.least

    def vouches(self, incarnation: int) -> bool:
        """By what the dead member has left with the layer that orders."""
        return self._layer.above.up_vouches(incarnation)

    def is_ending(self, incarnation: int) -> bool:
        """By the driver, if it watches processes."""
        processes = self._layer.core.processes
        return processes is not None and processes.is_ending(incarnation)

    def say_alone(self, left_out: tuple[int, ...]) -> None:
        """By the layer that orders, if others can know it from there."""
        self._layer.above.up_alone(left_out)
