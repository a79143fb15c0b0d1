"""How a group stands at this process, as its launcher asks for it; inside of the stack's driver."""

from __future__ import annotations

import time
from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from orcalike.launch_protocol.control_lines import Describe, Described
from orcalike.launch_protocol.descriptions import (
    OBJECTS_MAX,
    WAITS_MAX,
    Description,
    Forked,
    SharedObject,
    Wait,
)
from orcalike.runtime import waits
from orcalike.runtime.call import waiting_reads
from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.invocation import name_of
from orcalike.runtime.replica import Replica
from orcalike.runtime.task import queued_at
from orcalike.session.group_info import next_seqno_of
from orcalike.session.options import JoinOptions
from orcalike.transport.degree import resilience_of
from orcalike.transport.layers.mbrship import Mbrship
from orcalike.transport.layers.pack import Pack
from orcalike.transport.layers.xfer import Xfer
from orcalike.transport.stack import Stack
from orcalike.transport.view import View

if TYPE_CHECKING:
    from orcalike.session.upper import Upper


if TYPE_CHECKING:

    class Describing(Protocol):
        """A session, as far as it is described."""

        @property
        def options(self) -> JoinOptions:
            """With the group's name."""

        @property
        def stack(self) -> Stack:
            """The member's."""

        @property
        def view(self) -> View | None:
            """The one that is installed."""

        @property
        def upper(self) -> Upper:
            """What stands on top of the stack."""

        def show(self, view: View) -> View:
            """A view as the program sees it."""


def describe(session: Describing, question: Describe) -> Described:
    """The answer of a member with replicas."""
    upper = session.upper
    runtime = upper if isinstance(upper, Runtime) else None
    objects, guarded = upper.load()
    view = None if session.view is None else session.show(session.view)
    known = describe_stack(
        session.stack,
        view,
        objects=objects,
        guarded=guarded,
        resilience=resilience_of(upper.group_degree),
        waits=_waits(runtime),
        shared=_shared(runtime) if question.objects and runtime and view else (),
        forked=_forked(runtime),
    )
    return Described(question.number, session.options.name, known)


def describe_stack(
    stack: Stack,
    view: View | None,
    *,
    objects: int = 0,
    guarded: int = 0,
    resilience: int | str | None = None,
    waits: tuple[Wait, ...] = (),
    shared: tuple[SharedObject, ...] = (),
    forked: tuple[Forked, ...] = (),
) -> Description:
    """How a group stands at a stack; `view` is that which is installed."""
    pack, transfer = stack.focus("PACK"), stack.focus("XFER")
    has_all = not isinstance(transfer, Xfer) or transfer.complete or transfer.silent
    membership = stack.focus("MBRSHIP")
    admitted = isinstance(membership, Mbrship) and membership.view is not None
    return Description(
        0 if view is None else view.number,
        0 if view is None else len(view.replicas),
        view is not None and view.primary,
        admitted and not has_all,
        next_seqno_of(stack),
        resilience,
        objects,
        pack.ticket if isinstance(pack, Pack) else 0,
        guarded,
        waits,
        shared,
        forked,
    )


def _waits(runtime: Runtime | None) -> tuple[Wait, ...]:
    """What this process waits for: its threads, the longest wait first, then its coroutines."""
    now = time.monotonic_ns()
    threads = sorted(waits.waiting.copy().values(), key=lambda wait: wait.since_ns)
    guarded = _guarded(runtime) if runtime is not None else set()
    found = [
        Wait(
            wait.kind_now(),
            wait.operation,
            wait.object,
            round((now - wait.since_ns) / 1e9, 1),
        )
        for wait in threads[:WAITS_MAX]
    ]
    for call in runtime.sender.awaited()[: WAITS_MAX - len(found)] if runtime is not None else ():
        name = "" if call.replica is None else call.replica.name
        operation = name_of(call.operation)
        kind = "guard" if (name, operation) in guarded else "call"
        found.append(Wait(kind, operation, name, None))
    return tuple(found)


def _forked(runtime: Runtime | None) -> tuple[Forked, ...]:
    """The processes that this member hosts."""
    starter = runtime.manager.forks.starter if runtime is not None else None
    return () if starter is None else tuple(Forked(*each) for each in starter.describe())


def _guarded(runtime: Runtime) -> set[tuple[str, str]]:
    """Objects and operations of the calls of this process that wait for their guards."""
    return {
        (replica.name, name_of(call.function))
        for call in runtime.long_waits.parked()
        if call.invocation is not None
        for replica in call.replicas
    }


def _shared(runtime: Runtime) -> tuple[SharedObject, ...]:
    """The group's objects by name, with the calls that wait at each."""
    blocked: Counter[Replica] = Counter()
    for call in list(runtime.waiting.values()):
        blocked.update(call.replicas)
    named = sorted(runtime.table.named(), key=attrgetter("name"))
    return tuple(
        SharedObject(
            replica.name,
            replica.class_name,
            _resilience_of(runtime, replica),
            blocked[replica],
            len(waiting_reads(replica)),
            len(queued_at(replica)),
        )
        for replica in named[:OBJECTS_MAX]
    )


def _resilience_of(runtime: Runtime, replica: Replica) -> int | str:
    """The degree of the object's class, or the group's if it has none of its own."""
    own = -1 if replica.info is None else replica.info.degree
    return resilience_of(runtime.degrees.group if own < 0 else own)
