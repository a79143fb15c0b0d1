"""What shared objects raise. `orcalike.errors` draws the whole tree."""

from __future__ import annotations

from typing import Any, Literal

from orcalike.transport.errors import OrcalikeError


class DeclarationError(OrcalikeError):
    """A shared class that cannot keep its promises: file, line, and the remedy."""


class NotSerializable(OrcalikeError):
    """A value that cannot travel, with the path to it (`argument 2 of Queue.put, ["a"][3]`)."""


class ClassMismatch(OrcalikeError):
    """A name that is shared with another class, or with another version of the class."""


class NestedWrite(OrcalikeError):
    """An operation that used another shared object, or the group, from inside."""


class GuardFalse(OrcalikeError):
    """A guard that does not hold, and that no other call could make hold: the object is not shared."""


class ObjectDropped(OrcalikeError):
    """The object was ended with `group.drop`, or the group that this process has joined again does not have it."""


class WindowFull(OrcalikeError):
    """Too many invocations are not yet ordered; `await group.drain()` waits for room."""


class TooManyWaiting(OrcalikeError):
    """So many calls wait already, at the object or for other members, that this one may not; it did not run."""


class BlockingInLoop(OrcalikeError):
    """A call that would wait, on the thread of a running event loop: use `.aio`."""


class InvocationTimeout(OrcalikeError, TimeoutError):
    """The time limit of an invocation passed.

    `outcome` is "withdrawn" (it did not run and never will) or "unknown" (the group is
    blocked, or this member was expelled, so no member could say).
    """

    def __init__(self, message: str, outcome: Literal["withdrawn", "unknown"]) -> None:
        super().__init__(message)
        self.outcome: Literal["withdrawn", "unknown"] = outcome

    def __reduce__(self) -> tuple[Any, ...]:
        """It may be raised in a process of a pool, and be sent to another one."""
        return type(self), (*self.args, self.outcome), vars(self)


class InvocationCancelled(OrcalikeError):
    """The invocation was withdrawn by `cancel()`, or because its member left."""


class ReplicaDivergence(OrcalikeError):
    """This replica is not like the others any more, and stopped serving."""


class InvariantBroken(OrcalikeError):
    """A write after which an invariant of the object's class does not hold, at each replica alike."""


class ForkFailed(OrcalikeError):
    """`group.fork` started no member: the function is not known there, or its process did not join."""


class Unreadable(Exception):
    """A value that is well formed, and that this process lacks something to read.

    Other processes can read it, so it is no result. No program sees it: the code that knows which
    operation the value belongs to raises a `ReplicaDivergence` that names it.
    """

    argument = 0
    """Which of the values that were decoded together it is, from 1."""
    values: tuple[object, ...] = ()
    """Those before it."""

    def of(self, operation: str, name: str | None = None) -> ReplicaDivergence:
        """The error for an argument of this operation, of the object of this name."""
        where = "" if name is None else f" of {name!r}"
        return ReplicaDivergence(
            f"argument {self.argument} of {operation}{where} cannot be read here: {self}"
        )


class GroupClosed(OrcalikeError):
    """The group was left; its objects show their last state and take no more calls."""
