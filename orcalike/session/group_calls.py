"""What a program asks of its group: share, find, drop, fence, barrier; reset and rejoin.

The first five go through the order and can be called in three ways: `group.share(...)` waits,
`await group.share.aio(...)` is for coroutines, `group.share.nowait(...)` returns an `Invocation`.

`reset` and `rejoin` are for a group that cannot go on by itself, and for a member without which it
went on: no order is there for them, and so no `nowait` (A05, A14).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

from orcalike.errors import GroupClosed, InvocationCancelled
from orcalike.runtime import classes
from orcalike.runtime.arguments import constructor_arguments
from orcalike.runtime.codes import Code
from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.durations import Duration, seconds_of
from orcalike.runtime.invocation import Invocation
from orcalike.runtime.invocation_coroutine import InvocationCoroutine
from orcalike.runtime.operation import Operation
from orcalike.runtime.raising import fresh
from orcalike.runtime.replica import refuse_inside, refuse_to_wait, replica_of
from orcalike.runtime.sender import Sender
from orcalike.runtime.with_room import await_with_room, start_with_room
from orcalike.session import resetting
from orcalike.session.entering import Entering
from orcalike.session.notebook import show_objects_of
from orcalike.session.session import Session
from orcalike.transport.drivers.deferral import held
from orcalike.transport.view import View

P = ParamSpec("P")
T = TypeVar("T")

WITHDRAWN_WITHIN = 1.0
"""Seconds in which a call that is withdrawn at its time limit can still have its outcome; only a group that is stuck takes as long."""


class Share:
    """`group.share`, in three ways."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @held
    def __call__(self, cls: Callable[P, T], name: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The object `name` of class `cls`; the first in the order makes it with these arguments.

        The others bind to it: other arguments give one warning, another class ClassMismatch. What
        `__init__` raises is raised, and the name stays free.
        """
        refuse_to_wait("share")
        return self.nowait(cls, name, *args, **kwargs).result()

    def aio(
        self, cls: Callable[P, T], name: str, /, *args: P.args, **kwargs: P.kwargs
    ) -> InvocationCoroutine[T]:
        """The same, for coroutines; the call is sent at once, or when there is room for it."""
        start = partial(self.nowait, cls, name, *args, **kwargs)
        return await_with_room(self._runtime.sender, f"share {name!r}", start)

    def nowait(
        self, cls: Callable[P, T], name: str, /, *args: P.args, **kwargs: P.kwargs
    ) -> Invocation[T]:
        """The same, without waiting."""
        info = _info_of(cls)
        _check_name(name)
        self._runtime.degrees.note_single(info)
        show_objects_of(info.cls)
        placed, named = constructor_arguments(info, args, kwargs)
        arguments = self._runtime.sender.codec.encode((*placed, named), f"share of {name!r}")
        what = (name, info.name, info.digest, arguments, hash(info.name), info.least)
        degree = self._runtime.degrees.of_change(info.least)
        invocation: Invocation[T] = self._runtime.sender.invoke_group(
            Code.CREATE, what, f"share {name!r}", degree=degree
        )
        return invocation


class Find:
    """`group.find`, in three ways."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @held
    def __call__(
        self, cls: Callable[..., T], name: str, /, *, timeout: Duration | None = None
    ) -> T:
        """The object `name`; waits until a member shares it.

        Raises TimeoutError if none has done so within `timeout` (seconds, or a text such as "2s").
        """
        refuse_to_wait("find")
        seconds = seconds_of(timeout)  # which may raise: before the call is sent
        return self._call(cls, name, timeout).wait(seconds)

    async def aio(
        self, cls: Callable[..., T], name: str, /, *, timeout: Duration | None = None
    ) -> T:
        """The same, for coroutines."""
        seconds = seconds_of(timeout)
        return await self._call(cls, name, timeout).wait_on_loop(seconds)

    def _call(self, cls: Callable[..., T], name: str, timeout: Duration | None) -> _Call[T]:
        start = partial(self.nowait, cls, name)
        late = f"no member has shared an object {name!r} within {_text_of(timeout)}"
        return _Call(self._runtime.sender, f"find {name!r}", start, late)

    def nowait(self, cls: Callable[..., T], name: str, /) -> Invocation[T]:
        """The same, without waiting."""
        info = _info_of(cls)
        _check_name(name)
        what = (name, info.name, info.digest)
        invocation: Invocation[T] = self._runtime.sender.invoke_group(
            Code.FIND, what, f"find {name!r}"
        )
        return invocation


class Drop:
    """`group.drop`, in three ways."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @held
    def __call__(self, obj: object, /) -> None:
        """End a shared object."""
        refuse_to_wait("drop")
        self.nowait(obj).result()

    def aio(self, obj: object, /) -> InvocationCoroutine[None]:
        """The same, for coroutines; the call is sent at once, or when there is room for it."""
        return await_with_room(self._runtime.sender, "drop", partial(self.nowait, obj))

    def nowait(self, obj: object, /) -> Invocation[None]:
        """The same, without waiting."""
        replica = replica_of(obj)
        _refuse_if_left(self._runtime)
        if isinstance(obj, str):
            raise TypeError(f"{obj!r} is a name: drop takes the object that share or find returns")
        if replica is None or replica.invoker is not self._runtime.sender:
            raise TypeError(f"{obj!r} is not shared in this group")
        invocation: Invocation[None] = self._runtime.sender.invoke_group(
            Code.DROP,
            (replica.number,),
            f"drop {replica.name!r}",
            degree=self._runtime.degrees.of_change(replica.least),
        )
        return invocation


class Whole:
    """What concerns the whole group and takes no arguments, in three ways."""

    def __init__(self, runtime: Runtime, code: Code) -> None:
        self._runtime = runtime
        self._code = code

    @held
    def __call__(self, *, timeout: Duration | None = None) -> None:
        """Wait for it; after `timeout` (seconds, or "2s") it is withdrawn, with TimeoutError."""
        refuse_to_wait(self._code.name.lower())
        seconds = seconds_of(timeout)  # which may raise: before an arrival is sent, which counts
        self._call(timeout, leaves=timeout is None).wait(seconds)

    async def aio(self, *, timeout: Duration | None = None) -> None:
        """The same, for coroutines."""
        seconds = seconds_of(timeout)
        await self._call(timeout, leaves=True).wait_on_loop(seconds)

    def nowait(self) -> Invocation[None]:
        """The same, without waiting."""
        what = self._code.name.lower()
        invocation: Invocation[None] = self._runtime.sender.invoke_group(self._code, (), what)
        return invocation

    def _start(self, awaited: bool, leaves: bool) -> Invocation[None]:
        what = self._code.name.lower()
        invocation: Invocation[None] = self._runtime.sender.invoke_group(
            self._code, (), what, awaited=awaited, leaves=leaves
        )
        return invocation

    def _call(self, timeout: Duration | None, *, leaves: bool) -> _Call[None]:
        what = self._code.name.lower()
        late = f"{what} was not complete within {_text_of(timeout)}"
        start = partial(self._start, timeout is None, leaves)
        return _Call(self._runtime.sender, what, start, late)


class Reset:
    """`group.reset`, for threads and coroutines."""

    def __init__(
        self,
        session: Session,
        runtime: Runtime,
        lower_degrees: Callable[[float | None], None],
    ) -> None:
        self._session = session
        self._runtime = runtime
        self._lower_degrees = lower_degrees

    def __call__(self, *, minimum: int, timeout: Duration | None = None) -> View:
        """Rebuild a blocked group of the members that answer, on this program's word.

        Only if the group is blocked: it waits for members, and `group.info().blocked` says for
        which. It goes on without them then, in a new *lineage*: what only they held is lost, and
        if they live still, they are expelled as soon as the two meet. If several members
        reset at once the group is rebuilt once. Returns the new view. Each member that was in the
        old one logs what has happened, and its next call raises `DataLossPossible`, once, and is
        not sent; so does the next call here. What was under way goes on. From then on a degree is
        MIN(r, members - 1), as with `join(degree="available")` (Amoeba 3.1). That is all that a
        reset does if the group has a view, and only too few members for a degree: nothing is
        lost then, and the lineage stays.

        Args:
            minimum: How many members must be in it, this one and witnesses included.
            timeout: Seconds that it may take, or a text such as "10s"; None for no limit.

        Raises:
            NotPrimary: Fewer than `minimum` have answered. It may be tried again.
            GroupClosed: The group was left.
            OrcalikeError: The group is not blocked.
        """
        check_minimum(minimum)
        refuse_to_wait("reset")
        _refuse_if_left(self._runtime)
        return resetting.reset(self._session, minimum, seconds_of(timeout), self._lower_degrees)

    async def aio(self, *, minimum: int, timeout: Duration | None = None) -> View:
        """The same, for coroutines."""
        check_minimum(minimum)
        refuse_inside("reset")
        _refuse_if_left(self._runtime)
        import asyncio  # not at the top: only coroutines need it, and it takes long

        return await asyncio.to_thread(
            resetting.reset, self._session, minimum, seconds_of(timeout), self._lower_degrees
        )


class Rejoin:
    """`group.rejoin`, for threads and coroutines."""

    def __init__(self, session: Session, runtime: Runtime) -> None:
        self._session = session
        self._runtime = runtime

    def __call__(self, *, timeout: Duration | None = None) -> None:
        """Join again after `Expelled` or `ReplicaDivergence`, as a new incarnation with the same rank.

        The objects stay bound and get the state that the group has now. What was under way has ended
        with the same error, and is not repeated.

        Raises JoinFailed after `timeout` seconds, or if the group has given that rank to another process, GroupClosed if the group was left, OrcalikeError if it is
        a member that serves.
        """
        refuse_to_wait("rejoin")
        _refuse_if_left(self._runtime)
        Entering(self._session).rejoin(seconds_of(timeout))

    async def aio(self, *, timeout: Duration | None = None) -> None:
        """The same, for coroutines."""
        refuse_inside("rejoin")
        _refuse_if_left(self._runtime)
        import asyncio  # not at the top: only coroutines need it, and it takes long

        await asyncio.to_thread(Entering(self._session).rejoin, seconds_of(timeout))


def _refuse_if_left(runtime: Runtime) -> None:
    if isinstance(runtime.sender.failure, GroupClosed):
        raise fresh(runtime.sender.failure)


def check_minimum(minimum: int) -> None:
    """Raise if that is no number of members."""
    if isinstance(minimum, bool) or not isinstance(minimum, int):
        raise TypeError(f"minimum={minimum!r}: it is a number of members")
    if minimum < 1:
        raise ValueError(f"minimum={minimum}: the group has 1 member at the least")


class _Call(Generic[T]):
    """A call that `start` sends, and that is withdrawn with TimeoutError(late) when its time is over."""

    def __init__(
        self, sender: Sender, what: str, start: Callable[[], Invocation[T]], late: str
    ) -> None:
        self._sender = sender
        self._what = what
        self._start = start
        self._late = late

    def wait(self, seconds: float | None) -> T:
        """Wait in this thread."""
        end = None if seconds is None else time.monotonic() + seconds
        invocation = self._sender.room.start(self._what, seconds, self._start)
        try:
            return invocation.result(None if end is None else max(0, end - time.monotonic()))
        except TimeoutError:
            if not invocation.cancel():
                return invocation.result()  # it is here, or has raised TimeoutError itself
        try:
            return invocation.result(WITHDRAWN_WITHIN)  # it may have come before the withdrawal
        except (InvocationCancelled, TimeoutError):
            raise TimeoutError(self._late) from None

    async def wait_on_loop(self, seconds: float | None) -> T:
        """The same, for coroutines."""
        import asyncio  # not at the top: only coroutines need it, and it takes long

        until = None if seconds is None else asyncio.get_running_loop().time() + seconds
        invocation = await start_with_room(self._sender, self._what, until, self._start)
        try:
            async with asyncio.timeout_at(until) as limit:
                return await invocation
        except TimeoutError:
            if not limit.expired():
                raise
        try:  # it is withdrawn by now, and may have come before that
            async with asyncio.timeout(WITHDRAWN_WITHIN):
                return await invocation
        except (InvocationCancelled, TimeoutError):
            raise TimeoutError(self._late) from None


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of a shared object is a string, not {name!r}")


def _text_of(timeout: Duration | None) -> str:
    return timeout if isinstance(timeout, str) else f"{timeout} s"


def _info_of(cls: Any) -> classes.ClassInfo:
    cls = getattr(cls, "__origin__", cls)  # of `Queue[int]`, too
    info = classes.lookup_class(cls) if isinstance(cls, type) else None
    if info is None:
        raise TypeError(_why_not_shared(cls))
    init: Any = vars(cls).get("__init__")
    if isinstance(init, FunctionType) and init is not info.init:
        raise TypeError(
            f"{cls.__qualname__} has another __init__ than when it was declared: write "
            "@orcalike.shared above the decorator that gave it one, such as @dataclass"
        )
    return info


def _why_not_shared(cls: object) -> str:
    """Why that is no class whose objects can be shared, and what to write instead."""
    if not isinstance(cls, type):
        kind = type(cls).__name__
        if classes.lookup_class(type(cls)) is not None:
            return (
                f"this is a {kind}, where a class belongs: write share({kind}, name, arguments), "
                f"and each process makes its own replica"
            )
        return f"{cls!r} is no class: share(cls, name, ...) takes the class first, then the name"
    if shared := [base for base in cls.__mro__[1:] if classes.lookup_class(base)]:
        return (
            f"{cls.__qualname__} is not shared, although its base {shared[0].__qualname__} is: "
            f"write @orcalike.shared above `class {cls.__name__}`, too"
        )
    operations = {name: it for name, it in vars(cls).items() if isinstance(it, Operation)}
    if any(operation.info is not None for operation in operations.values()):
        return (
            f"{cls.__qualname__} is a copy of the class that was declared: write @orcalike.shared "
            "above the decorator that made it, such as @dataclass(slots=True)"
        )
    for named in operations:
        return (
            f"{cls.__qualname__}.{named} is an operation, but the class is not shared: write "
            f"@orcalike.shared above `class {cls.__name__}`"
        )
    if cls.__module__ == "builtins":
        return (
            f"{cls.__name__} is not a shared class: keep one in an attribute of a class of your own "
            "that is decorated with @orcalike.shared"
        )
    return f"{cls!r} is not a shared class: decorate it with @orcalike.shared"
