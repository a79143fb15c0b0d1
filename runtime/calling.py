"""What a call needs of the runtime that it runs in, and of the runtime's parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from orcalike.runtime.invocation import Invocation
from orcalike.runtime.marshal import Codec
from orcalike.runtime.receipts import Receipts
from orcalike.runtime.replica import Replica
from orcalike.runtime.time_budget import TimeBudget
from orcalike.transport.drivers.driver import Driver

CallT = TypeVar("CallT")
"""A call: `call.Call`, whose module imports this one."""
CallT_contra = TypeVar("CallT_contra", contravariant=True)

if TYPE_CHECKING:
    from orcalike.runtime.divergence import Diverging

    class Recording(Protocol[CallT_contra]):
        """A history, as far as calls take it."""

        def ran(self, call: CallT_contra, result: object, error: BaseException | None) -> None:
            """A call has run."""

    class Repeating(Protocol[CallT_contra]):
        """What runs writes twice, as far as calls take it."""

        def run(self, call: CallT_contra) -> object:
            """Run a call; gives and raises what it does."""

    class Outgoing(Protocol[CallT_contra]):
        """A sender, as far as calls take it."""

        driver: Driver
        failure: Exception | None

        @property
        def codec(self) -> Codec:
            """For the arguments."""

        @property
        def receipts(self) -> Receipts | None:
            """For those calls that wait until others have applied them."""

        @property
        def history(self) -> Recording[CallT_contra] | None:
            """None if none is kept."""

        def lose(self, invocation: Invocation[object] | None, error: BaseException) -> None:
            """An invocation ends without having run here."""

    class Calling(Diverging, Protocol[CallT]):
        """The runtime, as far as calls take it."""

        start_thread: Callable[[Callable[[], None]], None]

        @property
        def sender(self) -> Outgoing[CallT]:
            """For outcomes."""

        @property
        def incarnation(self) -> int:
            """Of this member."""

        @property
        def waiting(self) -> dict[tuple[int, int], CallT]:
            """By incarnation and ticket: the calls that wait for their guards."""

        @property
        def budget(self) -> TimeBudget:
            """For what runs in pop-up threads, and in hooks."""

        @property
        def shadow(self) -> Repeating[CallT] | None:
            """None if writes run once."""

        def place_of(self) -> tuple[int, int, int]:
            """(seqno, index, stamp) of what is dispatched now."""

        def digest_of(self, replica: Replica) -> bytes:
            """The object's state, encoded in one way only."""
