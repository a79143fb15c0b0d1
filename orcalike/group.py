"""A group: what `join` yields (DESIGN, Sharing).

Whatever goes through the order can be called in three ways: `group.share(...)` waits,
`await group.share.aio(...)` is for coroutines, `group.share.nowait(...)` returns an `Invocation`.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any, Generic, ParamSpec, TypeVar

from orcalike import failpoints
from orcalike.endpoint import LEAVE_WITHIN, Endpoint
from orcalike.errors import GroupClosed, OrcalikeError, StackError
from orcalike.info import Blocked, GroupInfo, next_seqno_of
from orcalike.long_operations import LongOperations
from orcalike.meeting import Deserted
from orcalike.notebook import html_of_group, show_objects_of
from orcalike.plan import Plan, find_seed
from orcalike.recovery import Rejoin, Reset
from orcalike.runtime import classes
from orcalike.runtime.arguments import constructor_arguments
from orcalike.runtime.assemble import follow_declarations, make_runtime
from orcalike.runtime.codes import Code
from orcalike.runtime.dispatch import Runtime, refuse_inside, refuse_to_wait
from orcalike.runtime.durations import Duration, seconds_of
from orcalike.runtime.invocation import Invocation
from orcalike.runtime.operation import Operation
from orcalike.runtime.raising import fresh
from orcalike.runtime.receipts import NO_STABLE
from orcalike.transport.degree import degree_of, resilience_of
from orcalike.transport.drivers.deferral import held, held_or_undone
from orcalike.transport.layers.stable import Stable
from orcalike.transport.stability import Stability
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member, View

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger("orcalike")

VIEWS_MAX = 1024
"""Views that are kept for one iterator."""

_groups: weakref.WeakSet[Group] = weakref.WeakSet()


def _abandon_groups() -> None:
    for group in list(_groups):
        group._abandon()


os.register_at_fork(after_in_child=_abandon_groups)


def reasons_of_waits(within: float) -> list[str]:
    """A line for each call of this process that waits: which it is, and why it waits.

    A group in which an operation runs for longer than `within` seconds shows none.
    """
    found: list[str] = []
    for group in list(_groups):
        if not group._closed:
            runtime = group._runtime
            look = runtime.long_waits.reasons
            group._endpoint.pump.call_within(within, lambda now, look=look: found.extend(look()))
    return found


class Group:
    """A set of processes that share objects. `join` makes it; leaving its block ends it."""

    def __init__(self, plan: Plan) -> None:
        self._endpoint = Endpoint(plan, self._make_runtime, Runtime)
        self._runtime.driver = self._endpoint.pump
        self._endpoint.cast_ended = self._cast_ended
        if plan.failpoints:
            failpoints.install(
                plan.failpoints,
                self._endpoint.stack,
                self._endpoint.pump,
                self._runtime.history,
            )
        self._forget = follow_declarations(self._runtime, self._endpoint.pump.call)
        self._closed = False
        self._watch: LongOperations | None = None
        _groups.add(self)

    def _make_runtime(self, stack: Stack, endpoint: Endpoint) -> Runtime:
        checks, folder = endpoint.plan.checks, endpoint.plan.history
        self._runtime = make_runtime(
            stack,
            stack.me.incarnation,
            endpoint,
            chained="hash" in checks,
            strict="strict" in checks,
            shadow="shadow" in checks,
            patient=endpoint.plan.blocked == "wait",
            degree=degree_of(endpoint.plan.resilience),
            available=endpoint.plan.degree == "available",
            single=endpoint.plan.how == "alone",
            history=(folder, endpoint.plan.name) if folder else None,
            seed=find_seed(endpoint.plan.name),
        )
        return self._runtime

    def _cast_ended(self, ranks: set[int]) -> None:
        try:
            self._runtime.invoke_group(Code.ENDED, tuple(sorted(ranks)), "the end of a rank")
        except OrcalikeError as error:
            _log.info("nobody was told that ranks %s have ended: %s", sorted(ranks), error)

    # Who is in it.

    @property
    def name(self) -> str:
        """The group's name: each name is a group with an order of its own."""
        return self._endpoint.plan.name

    @property
    def view(self) -> View:
        """The view that is installed here; `view.others` are the witnesses.

        `view.primary` is False while the group is blocked, and after this member was expelled.
        """
        view = self._endpoint.view
        if view is None:
            raise GroupClosed("the group was not joined, or was left")
        return self._endpoint.show(view)

    @property
    def me(self) -> Member:
        """This member."""
        self.view  # noqa: B018 - raises where there is none
        me = self._endpoint.me
        assert me is not None
        return me

    @property
    def rank(self) -> int:
        """This member's lasting number in its program."""
        rank = self.me.rank
        assert rank is not None
        return rank

    @property
    def members(self) -> tuple[Member, ...]:
        """The members with a rank, by rank."""
        return self.view.replicas

    @property
    def size(self) -> int:
        """How many members have a rank."""
        return len(self.members)

    @property
    def address(self) -> str:
        """What others name to join through this member; "" for a group of one without a socket."""
        return self._endpoint.address

    def views(self) -> Iterator[View]:
        """The views to come, one after the other, in this thread; until the group is left.

        Of those that were not asked for yet the newest 1,024 are kept.
        """
        queue: SimpleQueue[View | None] = SimpleQueue()
        known, listeners = weakref.ref(queue), self._endpoint.on_view

        def put(view: View | None) -> None:
            queue = known()
            if queue is not None:
                if queue.qsize() >= VIEWS_MAX:
                    with contextlib.suppress(Empty):  # its reader may be faster
                        queue.get_nowait()
                queue.put(view)
            else:  # the iterator is gone, however it ended
                listeners.remove(put)

        listeners.append(put)
        if self._closed:
            return
        while (view := queue.get()) is not None:
            yield view

    async def aviews(self) -> AsyncIterator[View]:
        """The views to come, in a coroutine; until the group is left."""
        import asyncio  # not at the top: only coroutines need it, and it takes long

        queue: asyncio.Queue[View | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def keep(view: View | None) -> None:
            if queue.qsize() >= VIEWS_MAX:
                queue.get_nowait()
            queue.put_nowait(view)

        def put(view: View | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(keep, view)

        self._endpoint.on_view.append(put)
        try:
            while not self._closed and (view := await queue.get()) is not None:
                yield view
        finally:
            self._endpoint.on_view.remove(put)

    # Objects.

    @property
    def share(self) -> Share:
        """`share(cls, name, *args)`: the object of that name; the first in the order creates it."""
        return Share(self._runtime)

    @property
    def find(self) -> Find:
        """`find(cls, name)`: the object of that name, as soon as somebody has shared it."""
        return Find(self._runtime)

    @property
    def drop(self) -> Drop:
        """`drop(obj)` ends a shared object: whoever still uses it gets ObjectDropped."""
        return Drop(self._runtime)

    @property
    def fence(self) -> Whole:
        """`fence()` returns when all that was ordered before it has been applied here."""
        return Whole(self._runtime, Code.FENCE)

    @property
    def barrier(self) -> Whole:
        """`barrier()` returns when all members with a rank have called it.

        All are those of the view in which the first arrival is ordered, less those who leave.
        """
        return Whole(self._runtime, Code.BARRIER)

    async def drain(self) -> None:
        """Wait until this member may invoke more, after WindowFull."""
        await self._runtime.room()

    def digest(self) -> tuple[int, str]:
        """How many messages were delivered so far, and a digest chained over all of them (I1).

        Where the numbers are equal at two members, the digests are. The chain is kept where
        `ORCALIKE_CHECK=hash` asks for it, at all members; raises ValueError elsewhere. Where
        `ORCALIKE_HISTORY` asks for histories it is kept too, and the digests of the objects' states
        go into this member's.
        """
        refuse_inside("digest")
        runtime = self._runtime
        if runtime.chain is None:
            raise ValueError("no digest is kept: set ORCALIKE_CHECK=hash for all members")
        seen: list[tuple[int, bytes]] = []

        def look(now: int) -> None:
            assert runtime.chain is not None
            seen.append((runtime.dispatched, runtime.chain))

        self._endpoint.pump.call(look)
        self._record_states()
        return seen[0][0], seen[0][1].hex()

    def _record_states(self) -> None:
        """What the objects are, for the history; nothing is dispatched meanwhile."""
        if self._runtime.history is not None:
            self._endpoint.pump.call(lambda now: self._runtime.record_states())

    def info(self) -> GroupInfo:
        """The state of the group, as this member knows it (A06)."""
        refuse_inside("info")
        endpoint, runtime = self._endpoint, self._runtime
        if self._closed:
            raise GroupClosed(f"the group {self.name!r} was left")
        seen: list[GroupInfo] = []

        def look(now: int) -> None:
            blocked = endpoint.waits_for
            seen.append(
                GroupInfo(
                    name=self.name,
                    address=self.address,
                    me=self.me,
                    view=self.view,
                    resilience=resilience_of(runtime.effective_degree),
                    blocked=None if blocked is None else Blocked(*blocked),
                    next_seqno=next_seqno_of(endpoint.stack),
                )
            )

        endpoint.pump.call(look)
        return seen[0]

    def stability(self) -> Stability:
        """The stability matrix: how many messages of each member each member has applied (H67).

        It is what this member knows: true, and perhaps behind. Messages are invocations, and what
        the group itself does (`share`, `barrier`, ...). Raises StackError where the stack has no
        STABLE layer.
        """
        refuse_inside("stability")
        layer = self._endpoint.stack.focus("STABLE")
        if not isinstance(layer, Stable):
            raise StackError(NO_STABLE)
        if self._closed:
            raise GroupClosed(f"the group {self.name!r} was left")
        seen: list[Stability] = []
        self._endpoint.pump.call(lambda now: seen.append(layer.matrix.stability()))
        return seen[0]

    # When the group cannot go on, or has gone on without this member.

    @property
    def reset(self) -> Reset:
        """`reset(minimum=n)` rebuilds a blocked group of n members or more; data may be lost."""
        return Reset(self._endpoint, self._lower_degrees)

    def _lower_degrees(self, timeout: float | None) -> None:
        """Say that the members that are there are enough for every degree."""
        self._endpoint.pump.call(lambda now: self._runtime.manager.lower_degrees())
        self._runtime.invoke_group(Code.AVAILABLE, (), "reset", degree=0).result(timeout)

    @property
    def rejoin(self) -> Rejoin:
        """`rejoin()` makes an expelled member a member again, with fresh state and its rank."""
        return Rejoin(self._endpoint)

    # Leaving.

    def close(self) -> None:
        """Leave the group, as the end of its block does; one that was left stays so.

        What this member has invoked is waited for, if it can go on.
        """
        refuse_inside("close")
        atexit.unregister(self.close)
        self._leave(orderly=True)

    def _repr_html_(self) -> str:
        """The group as a notebook shows it."""
        return f"<b>Group</b> {self.name!r}: left" if self._closed else html_of_group(self)

    @held
    def _leave(self, *, orderly: bool) -> None:
        if self._closed:
            return
        try:
            if orderly and self._runtime.failure is None:
                self._wait_for_own()
        except BaseException:  # a handler's, as of Ctrl-C: the member leaves all the same
            orderly = False
            raise
        finally:
            try:
                self._withdraw_own()
                self._record_states()
                self._endpoint.leave(1.0 if not orderly else 5.0)
            finally:
                self._end()

    async def _leave_on_loop(self, *, orderly: bool) -> None:
        if self._closed:
            return
        try:
            if orderly and self._runtime.failure is None:
                await self._wait_for_own_on_loop()
        except BaseException:  # a cancellation, as by Ctrl-C: the member leaves all the same
            orderly = False
            raise
        finally:
            try:
                self._withdraw_own()
                self._record_states()
                await self._endpoint.leave_on_loop(1.0 if not orderly else 5.0)
            finally:
                self._end()

    def _wait_for_own(self) -> None:
        """Wait until what this member has invoked is ordered and applied, where it can be."""
        try:
            fence = self._fence_for_leaving()
            patience = Patience(self._is_stuck)
            while patience.lasts():
                if self._endpoint.pump.attend(fence, Patience.STEP):
                    return fence.result()
            self._say_left_behind()
        except OrcalikeError as error:
            _log.warning("left without an answer: %s", error)

    async def _wait_for_own_on_loop(self) -> None:
        import asyncio  # not at the top: only coroutines need it, and it takes long

        try:
            fence = asyncio.ensure_future(self._fence_for_leaving())
            patience = Patience(self._is_stuck)
            while patience.lasts():
                if (await asyncio.wait({fence}, timeout=Patience.STEP))[0]:
                    return fence.result()
            self._say_left_behind()
        except OrcalikeError as error:
            _log.warning("left without an answer: %s", error)

    def _fence_for_leaving(self) -> Invocation[None]:
        """A fence that waits for what was invoked here before, and for no members besides."""
        invocation: Invocation[None] = self._runtime.invoke_group(Code.FENCE, (), "fence", degree=0)
        return invocation

    def _is_stuck(self) -> bool:
        return self._endpoint.blocked is not None or self._endpoint.lacks_members_for_own()

    def _say_left_behind(self) -> None:
        why = "it is blocked" if self._endpoint.blocked else "the view has too few members for them"
        _log.warning("the group %r was left with calls under way: %s", self.name, why)

    def _withdraw_own(self) -> None:
        """What still waits for a guard is withdrawn when the member leaves."""
        mine = [
            call.function.title
            for (source, _), call in list(self._runtime.waiting.items())
            if source == self._runtime.incarnation
        ]
        if mine:
            _log.warning("withdrawn, since its member leaves: %s", ", ".join(sorted(mine)))

    def _begin(self) -> None:
        """The group was joined."""
        if self._endpoint.plan.how != "alone":
            self._watch = LongOperations(self._runtime, self._endpoint.pump)

    def _end(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._runtime.fail_all(GroupClosed(f"the group {self.name!r} was left"))
        self._let_go()

    def _abandon(self) -> None:
        """This is a forked child: the group is its parent's."""
        if not self._closed:
            self._runtime.failure = GroupClosed("a forked child has no group: join in the child")
            self._let_go()
            self._endpoint.abandon()

    def _let_go(self) -> None:
        self._closed = True
        for listener in list(self._endpoint.on_view):
            listener(None)
        self._forget()
        error = self._runtime.failure
        if not isinstance(error, GroupClosed):
            error = GroupClosed(f"the group {self.name!r} was left")
        self._runtime.let_go(error)

    def __repr__(self) -> str:
        view = self._endpoint.view
        return f"<Group {self.name!r}: {view or 'not joined'}>"


class Patience:
    """How long somebody who leaves waits for calls that cannot go on: those that can, may take long."""

    STEP = LEAVE_WITHIN / 10
    """Seconds between two looks."""

    def __init__(self, is_stuck: Callable[[], bool]) -> None:
        self._is_stuck = is_stuck
        self._since: float | None = None

    def lasts(self) -> bool:
        """Whether to wait for another step."""
        if not self._is_stuck():
            self._since = None
        elif self._since is None:
            self._since = time.monotonic()
        return self._since is None or time.monotonic() - self._since < LEAVE_WITHIN


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
    ) -> Awaitable[T]:
        """The same, for coroutines."""
        return self.nowait(cls, name, *args, **kwargs)

    def nowait(
        self, cls: Callable[P, T], name: str, /, *args: P.args, **kwargs: P.kwargs
    ) -> Invocation[T]:
        """The same, without waiting."""
        info = _info_of(cls)
        self._runtime.manager.note_single(info)
        show_objects_of(info.cls)
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a shared object is a string, not {name!r}")
        placed, named = constructor_arguments(info, args, kwargs)
        arguments = self._runtime.codec.encode((*placed, named), f"share of {name!r}")
        what = (name, info.name, info.digest, arguments, hash(info.name), info.least)
        degree = self._runtime.manager.degree_of_change(info.least)
        invocation: Invocation[T] = self._runtime.invoke_group(
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
        invocation = self.nowait(cls, name)
        try:
            return invocation.result(timeout)
        except TimeoutError:
            if invocation.done():  # raised by what was found
                raise
            invocation.cancel()
            raise TimeoutError(_not_found(name, timeout)) from None

    async def aio(
        self, cls: Callable[..., T], name: str, /, *, timeout: Duration | None = None
    ) -> T:
        """The same, for coroutines."""
        return await _within(self.nowait(cls, name), timeout, _not_found(name, timeout))

    def nowait(self, cls: Callable[..., T], name: str, /) -> Invocation[T]:
        """The same, without waiting."""
        info = _info_of(cls)
        what = (name, info.name, info.digest)
        invocation: Invocation[T] = self._runtime.invoke_group(Code.FIND, what, f"find {name!r}")
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

    def aio(self, obj: object, /) -> Awaitable[None]:
        """The same, for coroutines."""
        return self.nowait(obj)

    def nowait(self, obj: object, /) -> Invocation[None]:
        """The same, without waiting."""
        replica = self._runtime.replica_of(obj)
        if isinstance(self._runtime.failure, GroupClosed):
            raise fresh(self._runtime.failure)
        if replica is None or replica.invoker is not self._runtime:
            raise TypeError(f"{obj!r} is not shared in this group")
        invocation: Invocation[None] = self._runtime.invoke_group(
            Code.DROP,
            (replica.number,),
            f"drop {replica.name!r}",
            degree=self._runtime.manager.degree_of_change(replica.least),
        )
        return invocation


class Whole:
    """What concerns the whole group and takes no arguments, in three ways."""

    def __init__(self, runtime: Runtime, code: Code) -> None:
        self._runtime = runtime
        self._code = code

    @held
    def __call__(self, *, timeout: Duration | None = None) -> None:
        """Wait for it; `timeout` (seconds, or "2s") ends only the waiting (TimeoutError)."""
        refuse_to_wait(self._code.name.lower())
        self.nowait().result(timeout)

    async def aio(self, *, timeout: Duration | None = None) -> None:
        """The same, for coroutines."""
        what = self._code.name.lower()
        await _within(self.nowait(), timeout, f"{what} was not complete within {_said(timeout)}")

    def nowait(self) -> Invocation[None]:
        """The same, without waiting."""
        what = self._code.name.lower()
        invocation: Invocation[None] = self._runtime.invoke_group(self._code, (), what)
        return invocation


async def _within(invocation: Invocation[T], timeout: Duration | None, late: str) -> T:
    """Await an invocation; when the time is over, withdraw it and raise TimeoutError(late)."""
    seconds = seconds_of(timeout)
    if seconds is None:
        return await invocation
    import asyncio  # not at the top: only coroutines need it, and it takes long

    try:
        async with asyncio.timeout(seconds) as limit:
            return await invocation
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeoutError(late) from None


def _not_found(name: str, timeout: Duration | None) -> str:
    return f"no member has shared an object {name!r} within {_said(timeout)}"


def _said(timeout: Duration | None) -> str:
    return timeout if isinstance(timeout, str) else f"{timeout} s"


class Joining(Generic[T]):
    """What `join` returns: a context manager, sync or async."""

    def __init__(self, plan: Callable[[], Plan]) -> None:
        self._plan = plan
        self._group: Group | None = None

    def _join(self) -> Group:
        plan = self._plan()
        with contextlib.ExitStack() as lock:
            if plan.place is not None:
                lock.enter_context(plan.place.locked(plan.timeout))
            while True:
                self._group = group = Group(plan.settled())
                _release_when_in(group, lock)
                try:
                    group._endpoint.join()
                    break
                except BaseException as error:
                    self._group = None
                    group._end()
                    if not isinstance(error, Deserted):
                        raise
        _announce(group)
        return group

    def _leave(self, group: Group) -> None:
        group._leave(orderly=False)

    # A handler may raise right as `__enter__` returns: `__exit__` would never be called.
    __enter__ = held_or_undone(_leave)(_join)

    @held
    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._group is not None:
            self._group._leave(orderly=kind is None)

    async def __aenter__(self) -> Group:
        import asyncio  # not at the top: only coroutines need it, and it takes long

        plan, lock = self._plan(), contextlib.ExitStack()
        if plan.place is not None:
            await asyncio.to_thread(lock.enter_context, plan.place.locked(plan.timeout))
        with lock:
            while True:
                self._group = group = Group(plan.settled())
                _release_when_in(group, lock)
                try:
                    await group._endpoint.join_on_loop()
                    break
                except BaseException as error:
                    self._group = None
                    group._end()
                    if not isinstance(error, Deserted):
                        raise
        _announce(group)
        return group

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._group is not None:
            await self._group._leave_on_loop(orderly=kind is None)


def _release_when_in(group: Group, lock: contextlib.ExitStack) -> None:
    """Give the meeting place's lock back as soon as others can join through this member."""

    def release(view: View | None) -> None:
        listeners.remove(release)
        lock.close()

    listeners = group._endpoint.on_view
    listeners.append(release)


def connect(joining: Joining[Group]) -> Group:
    """Join without a block: the group is left by `close`, or when the interpreter ends."""
    group = joining.__enter__()
    atexit.register(group.close)
    return group


def _info_of(cls: Any) -> classes.ClassInfo:
    cls = getattr(cls, "__origin__", cls)  # of `Queue[int]`, too
    info = classes.lookup_class(cls) if isinstance(cls, type) else None
    if info is None:
        raise TypeError(_why_not_shared(cls))
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
    named = next((name for name, value in vars(cls).items() if isinstance(value, Operation)), None)
    if named is not None:
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


def _announce(group: Group) -> None:
    """The group was joined: one startup line, on the logger (USERS 2.7)."""
    group._begin()
    view, plan, runtime = group.view, group._endpoint.plan, group._runtime
    sequencer = "witness" if view.sequencer.witness else f"rank {view.sequencer.rank}"
    _log.info(
        "%d members (%s) · rank %d · sequencer: %s · resilience %s",
        len(view.replicas),
        plan.how,
        group.rank,
        sequencer,
        resilience_of(runtime.effective_degree),
    )
    if runtime.single and runtime.group_degree:
        runtime.manager.note_single(None)
