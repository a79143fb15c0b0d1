"""A runtime for a stack: the parts, put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from orcalike.runtime import classes
from orcalike.runtime.budget import Budget
from orcalike.runtime.digests import ALL, APART, SOME, Digests
from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.finalizers import watch_finalizers
from orcalike.runtime.giving import Donor
from orcalike.runtime.long_waits import LongWaits
from orcalike.runtime.manager import Manager
from orcalike.runtime.object_table import ObjectTable
from orcalike.runtime.references import codec_of
from orcalike.runtime.taking import Taker
from orcalike.transport.drivers.deferral import OwnThread
from orcalike.transport.drivers.driver import clock, watch_collections
from orcalike.transport.stack import Stack

if TYPE_CHECKING:
    from orcalike.runtime.budget import HostAccount
    from orcalike.runtime.events import Events


def make_runtime(
    stack: Stack,
    incarnation: int,
    events: Events,
    *,
    time: Callable[[], int] = clock,
    host: HostAccount | None = None,
    chained: bool = False,
    strict: bool = False,
    shadow: bool = False,
    digests: str = "none",
    patient: bool = True,
    degree: int = 0,
    available: bool = False,
    single: bool = False,
    history: tuple[str, str] | None = None,
    seed: int = 0,
) -> Runtime:
    """The runtime on top of `stack`; its driver is still to be set.

    `host`: what the host of a virtual machine took; None: nothing. `chained`: it keeps a digest over
    all deliveries (I1). `strict`: it looks for assignments from outside, and for reads that write.
    `shadow`: it runs each write twice.
    `digests` of states are compared: "some", "all" (one after each write), or "none"; none if a
    history is kept, which has states of its own. `patient`: a call that the view is too small for waits.
    `degree` is the group's, if this member makes it, and `available` whether a degree counts as
    far as the view has members for it; `single`: no other process can join. `history`:
    it keeps one, in this folder for the group of this name, and the digest too; raises OSError
    if the folder is no good. `seed` is the group's, if this member makes it.
    """
    runtime = Runtime(stack, codec_of, incarnation)
    if chained or history is not None:
        runtime.chain = b""
    if history is not None:
        from orcalike.runtime.history import Recorder  # not at the top: few runs keep one

        runtime.sender.history = Recorder(*history, incarnation, runtime.sender.codec, time)
    runtime.table = ObjectTable(runtime, strict=strict)
    runtime.manager = Manager(runtime, seed)
    if shadow:
        from orcalike.runtime.shadow import Shadow  # not at the top: few programs ask for it

        runtime.shadow = Shadow(runtime.sender.codec)
    mode = {"none": APART, "some": SOME, "all": ALL}[digests] if history is None else APART
    runtime.digests = Digests(runtime, mode)
    runtime.look_always = mode == ALL
    runtime.donor = Donor(runtime)
    runtime.taker = Taker(runtime)
    runtime.budget.accounts = Budget(time)
    runtime.budget.host = host
    watch_collections()
    watch_finalizers()
    runtime.events = events
    runtime.long_waits = LongWaits(runtime)
    runtime.degrees.patient = patient
    runtime.degrees.group = degree
    runtime.degrees.available = available
    runtime.degrees.single = single
    runtime.start_thread = _start_thread
    return runtime


def _start_thread(function: Callable[[], None]) -> None:
    OwnThread(function, "orcalike pop-up").start()


def follow_declarations(runtime: Runtime, call: Callable[..., None]) -> Callable[[], None]:
    """Bring objects to life when their class is declared; `call` runs one input of the driver."""
    return classes.on_declared(lambda info: call(lambda now: runtime.table.declared(info)))
