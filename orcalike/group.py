"""A group: what `join` yields."""

from __future__ import annotations

import atexit
import logging
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, NoReturn

from orcalike.errors import GroupClosed, OrcalikeError, StackError
from orcalike.launch_protocol.environment import find_seed
from orcalike.runtime.assemble import follow_declarations, make_runtime
from orcalike.runtime.codes import Code
from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.event_loops import refuse_on_loop
from orcalike.runtime.evidence import record_states
from orcalike.runtime.invocation import Invocation
from orcalike.runtime.raising import fresh
from orcalike.runtime.receipts import NO_STABLE
from orcalike.runtime.replica import refuse_inside
from orcalike.session import failpoints
from orcalike.session.after_fork import closed_in_child, memberships
from orcalike.session.deadline import Deadline
from orcalike.session.fork_call import Fork
from orcalike.session.forking import HostedProcesses
from orcalike.session.group_calls import Drop, Find, Rejoin, Reset, Share, Whole
from orcalike.session.group_info import Blocked, GroupInfo, next_seqno_of, shares_memory
from orcalike.session.kept_views import KeptViews
from orcalike.session.leaving import Leaving
from orcalike.session.long_operations import LongOperations
from orcalike.session.notebook import html_of_group
from orcalike.session.options import JoinOptions
from orcalike.session.own_calls import OwnCalls
from orcalike.session.session import GIVE_UP_WITHIN, LEAVE_WITHIN, Session
from orcalike.transport.degree import degree_of, resilience_of
from orcalike.transport.drivers.deferral import held
from orcalike.transport.drivers.stolen import StolenTime
from orcalike.transport.layers.stable import Stable
from orcalike.transport.stability import Stability
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member, View

_log = logging.getLogger("orcalike")

_NO_BLOCK = (
    "a group is no block, and is left by group.close(): write `with orca.join() as group:`, in coroutines `async with`, "
    "to have it left at the end of a block"
)

_groups: weakref.WeakSet[Group] = weakref.WeakSet()


def reasons_of_waits(within: float) -> list[str]:
    """A line for each call of this process that waits: which it is, and why it waits.

    A group in which an operation runs for longer than `within` seconds shows none.
    """
    found: list[str] = []
    for group in list(_groups):
        if not group._closed:
            runtime = group._runtime
            look = runtime.long_waits.reasons
            group._session.pump.call_within(within, lambda now, look=look: found.extend(look()))
    return found


class Group:
    """A set of processes that share objects. `join` makes it; leaving its block ends it."""

    def __init__(self, options: JoinOptions) -> None:
        self._session = Session(options, self._make_runtime, Runtime)
        self._session.bar = self._runtime.bar
        self._runtime.sender.driver = self._session.pump
        self._session.cast_ended = self._cast_ended
        if options.failpoints:
            failpoints.install(
                options.failpoints,
                self._session.stack,
                self._session.pump,
                self._runtime.sender.history,
            )
        self._forget = follow_declarations(self._runtime, self._session.pump.call)
        self._own_calls = OwnCalls(self._runtime, self._session)
        self._hosted = HostedProcesses(self._session, self._runtime.manager.forks)
        self._runtime.manager.forks.starter = self._hosted
        self._closed = False
        self._leaving = Leaving()
        self._watch: LongOperations | None = None
        _groups.add(self)
        memberships.add(self)

    def _make_runtime(self, stack: Stack, session: Session) -> Runtime:
        checks, folder = session.options.checks, session.options.history
        self._runtime = make_runtime(
            stack,
            stack.me.incarnation,
            session,
            host=StolenTime(),
            chained="hash" in checks or "order" in checks,
            strict="strict" in checks,
            shadow="shadow" in checks,
            digests="none" if "none" in checks else "all" if "hash" in checks else "some",
            patient=session.options.blocked == "wait",
            degree=degree_of(session.options.resilience),
            available=session.options.degree == "available",
            single=session.options.how == "alone",
            history=(folder, session.options.name) if folder else None,
            seed=find_seed(session.options.name),
        )
        return self._runtime

    def _cast_ended(self, ranks: set[int]) -> None:
        try:
            self._runtime.sender.invoke_group(Code.ENDED, tuple(sorted(ranks)), "the end of a rank")
        except OrcalikeError as error:
            _log.info("the group got no report that ranks %s have ended: %s", sorted(ranks), error)

    # Its members.

    @property
    def name(self) -> str:
        """The group's name: each name is a group with an order of its own."""
        return self._session.options.name

    @property
    def view(self) -> View:
        """The view that is installed here; `view.others` are the witnesses. After leaving, the last one.

        `view.primary` is False while the group is blocked, and after this member was expelled or has left.
        """
        view = self._session.view
        if view is None:
            raise GroupClosed(f"the group {self.name!r} was not joined")
        return self._session.show(view)

    @property
    def me(self) -> Member:
        """This member."""
        self.view  # noqa: B018 - raises if there is none
        me = self._session.me
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
        """What others name to join through this member, while it is one; "" for a group of one without a socket."""
        return self._session.address

    def views(self) -> Iterator[View]:
        """The views that come after this call, one after the other, in a thread; until the group is left.

        Of those that were not asked for yet the newest 1,024 are kept.
        """
        return self._keep_views().read()

    def aviews(self) -> AsyncIterator[View]:
        """The same, in a coroutine."""
        return self._keep_views().read_on_loop()

    def _keep_views(self) -> KeptViews:
        kept = KeptViews(self._session.on_view)
        if self._closed:
            kept.put(None)
        return kept

    # Objects.

    @property
    def share(self) -> Share:
        """`share(cls, name, *args)`: the object of that name; the first in the order creates it."""
        return Share(self._runtime)

    @property
    def find(self) -> Find:
        """`find(cls, name)`: the object of that name, as soon as a member has shared it."""
        return Find(self._runtime)

    @property
    def drop(self) -> Drop:
        """`drop(obj)` ends a shared object: what still uses it gets ObjectDropped."""
        return Drop(self._runtime)

    @property
    def fence(self) -> Whole:
        """`fence()` returns when all that was ordered before it has been applied here."""
        return Whole(self._runtime, Code.FENCE)

    @property
    def barrier(self) -> Whole:
        """`barrier()` returns when all members with a rank have called it.

        All are those of the view in which the first arrival is ordered, less those that leave.
        """
        return Whole(self._runtime, Code.BARRIER)

    @property
    def fork(self) -> Fork[Group]:
        """`fork(function, *args, on=rank)` starts a process that runs `function(group, *args)` as a member.

        Its group is this one, as another member of it. `function` must be registered
        (`orca.register`); `on` is the member that hosts the process, this one if left out.
        """
        return Fork(self, self._runtime.manager.forks)

    async def drain(self) -> None:
        """Wait until this member may invoke more, after WindowFull."""
        self._check_open()
        await self._runtime.sender.wait_for_room()

    def digest(self) -> tuple[int, str]:
        """How many messages were delivered so far, and a digest chained over all of them.

        If the numbers are equal at two members, the digests are. The chain is kept if
        `ORCALIKE_CHECK=order` or `hash` asks for it, at all members; raises ValueError if not. If
        `ORCALIKE_HISTORY` asks for histories it is kept too, and the digests of the objects' states
        go into this member's. Raises GroupClosed after leaving.
        """
        refuse_inside("digest")
        self._check_open()
        runtime = self._runtime
        if runtime.chain is None:
            raise ValueError("no digest is kept: set ORCALIKE_CHECK=order for all members")
        seen: list[tuple[int, bytes]] = []

        def look(now: int) -> None:
            assert runtime.chain is not None
            self._session.stack.catch_up(now)  # as a read does, where the order is in shared memory
            seen.append((runtime.dispatched, runtime.chain))

        self._session.pump.call(look)
        self._record_states()
        return seen[0][0], seen[0][1].hex()

    def _record_states(self) -> None:
        """What the objects are, for the history; nothing is dispatched meanwhile."""
        if self._runtime.sender.history is not None:
            self._session.pump.call(lambda now: record_states(self._runtime))

    def info(self) -> GroupInfo:
        """The state of the group, as this member knows it. Raises GroupClosed after leaving."""
        refuse_inside("info")
        self._check_open()
        session, runtime = self._session, self._runtime
        seen: list[GroupInfo] = []

        def look(now: int) -> None:
            blocked = session.waits_for
            seen.append(
                GroupInfo(
                    name=self.name,
                    address=self.address,
                    me=self.me,
                    view=self.view,
                    resilience=resilience_of(runtime.degrees.effective),
                    blocked=None if blocked is None else Blocked(*blocked),
                    next_seqno=next_seqno_of(session.stack),
                )
            )

        session.pump.call(look)
        return seen[0]

    def stability(self) -> Stability:
        """The stability matrix: how many messages of each member each member has applied.

        It is what this member knows: true, and perhaps behind. Messages are invocations, and what
        the group itself does (`share`, `barrier`, ...). Raises StackError if the stack has no
        STABLE layer, GroupClosed after leaving.
        """
        refuse_inside("stability")
        self._check_open()
        layer = self._session.stack.focus("STABLE")
        if not isinstance(layer, Stable):
            raise StackError(NO_STABLE)
        seen: list[Stability] = []
        self._session.pump.call(lambda now: seen.append(layer.matrix.stability()))
        return seen[0]

    def _check_open(self) -> None:
        """Raise GroupClosed if the group was left, or this is a forked child."""
        if self._closed:
            closed = self._runtime.sender.failure
            assert closed is not None
            raise fresh(closed)

    # When the group cannot go on, or has gone on without this member.

    @property
    def reset(self) -> Reset:
        """`reset(minimum=n)` rebuilds a blocked group of n members or more; data may be lost."""
        return Reset(self._session, self._runtime, self._lower_degrees)

    def _lower_degrees(self, timeout: float | None) -> None:
        """Say that the members that are there are enough for every degree."""
        self._session.pump.call(lambda now: self._runtime.degrees.lower())
        sender = self._runtime.sender

        def start() -> Invocation[None]:
            lowered: Invocation[None] = sender.invoke_group(Code.AVAILABLE, (), "reset", degree=0)
            return lowered

        deadline = Deadline(timeout)
        sender.room.start("reset", timeout, start).result(deadline.rest())

    @property
    def rejoin(self) -> Rejoin:
        """`rejoin()` makes a member that was expelled, or has diverged, one again, with fresh state."""
        return Rejoin(self._session, self._runtime)

    # Leaving.

    def close(self) -> None:
        """Leave the group, as the end of its block does; one that was left stays so.

        What this member has invoked is waited for, if it can go on.
        """
        refuse_inside("close")
        refuse_on_loop(
            "group.close()",
            "leave the group by the end of `async with orca.join()`, or by `await asyncio.to_thread(group.close)`",
        )
        atexit.unregister(self.close)
        self._leave(orderly=True)

    def _repr_html_(self) -> str:
        """The group as a notebook shows it."""
        if self._closed:
            return f"<b>Group</b> {self.name!r}: left"
        return html_of_group(self.info(), shares_memory=shares_memory(self._session.stack))

    @held
    def _leave(self, *, orderly: bool) -> None:
        if self._closed or self._leaving.is_begun():
            return
        try:
            if orderly:
                self._hosted.wait(self._session.pump.attend)
            if orderly and self._runtime.sender.failure is None:
                self._own_calls.wait()
        except BaseException:  # a handler's, as of Ctrl-C: the member leaves all the same
            orderly = False
            raise
        finally:
            try:
                self._hosted.end()
                self._own_calls.withdraw()
                self._record_states()
                self._session.leave(LEAVE_WITHIN if orderly else GIVE_UP_WITHIN)
            finally:
                self._end()

    async def _leave_on_loop(self, *, orderly: bool) -> None:
        if self._closed:
            return
        if not self._leaving.begins():
            import asyncio  # not at the top: only coroutines need it, and it takes long

            await asyncio.to_thread(self._leaving.wait)
            return
        try:
            if orderly:
                await self._hosted.wait_on_loop()
            if orderly and self._runtime.sender.failure is None:
                await self._own_calls.wait_on_loop()
        except BaseException:  # a cancellation, as by Ctrl-C: the member leaves all the same
            orderly = False
            raise
        finally:
            try:
                await self._hosted.end_on_loop()
            finally:  # however often it is cancelled
                try:
                    self._own_calls.withdraw()
                    self._record_states()
                    await self._session.leave_on_loop(LEAVE_WITHIN if orderly else GIVE_UP_WITHIN)
                finally:
                    self._end()

    def _begin(self) -> None:
        """It is to be joined: what its state makes this process run is watched, too."""
        self._watch = LongOperations(self._runtime, self._session.pump)

    def _end(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._runtime.fail_all(GroupClosed(f"the group {self.name!r} was left"))
        self._own_calls.end()
        try:
            self._let_go()
        finally:
            self._leaving.over()

    def _abandon(self) -> None:
        """This is a forked child: the group is its parent's."""
        if not self._closed:
            sender = self._runtime.sender
            sender.failure = sender.no_outcomes = GroupClosed(
                f"{closed_in_child(self.address)}, or start the process with group.fork"
            )
            self._let_go()
            self._session.abandon()

    def _let_go(self) -> None:
        self._closed = True
        for listener in list(self._session.on_view):
            listener(None)
        self._forget()
        error = self._runtime.sender.failure
        if not isinstance(error, GroupClosed):
            error = GroupClosed(f"the group {self.name!r} was left")
        self._runtime.let_go(error)
        self._runtime.sender.failure = error  # of one that was expelled, or has diverged, too

    if not TYPE_CHECKING:  # type checkers find the mistake by themselves

        def __enter__(self) -> NoReturn:
            raise TypeError(_NO_BLOCK)

        __exit__ = __aenter__ = __aexit__ = __enter__

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"the group {self.name!r} is this process's, and cannot be pickled or copied: let the other "
            "process join it with seeds=group.address, or start it with group.fork"
        )

    def __repr__(self) -> str:
        state = "left" if self._closed else self._session.view or "not joined"
        return f"<Group {self.name!r}: {state}>"
