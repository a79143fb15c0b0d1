"""What `join` returns, and how a process gets into its group: by a block, or until it ends."""

from __future__ import annotations

import atexit
import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn

from orcalike.group import Group
from orcalike.runtime.event_loops import refuse_on_loop
from orcalike.session.deadline import Deadline
from orcalike.session.entering import Entering
from orcalike.session.entry import Deserted
from orcalike.session.group_info import shares_memory
from orcalike.session.locating import located, located_on_loop
from orcalike.session.notebook import let_cells_wait
from orcalike.session.options import JoinOptions
from orcalike.transport.degree import resilience_of
from orcalike.transport.drivers.deferral import held, held_or_undone
from orcalike.transport.view import View
from orcalike.transport.wording import counted

_HOW = "with orca.join() as group: ..., in coroutines async with; or group = orca.connect()"
_log = logging.getLogger("orcalike")


class Joining:
    """What `join` returns: a context manager, sync or async."""

    def __init__(self, options: Callable[[], JoinOptions]) -> None:
        self._options = options
        self._group: Group | None = None

    def _join(self) -> Group:
        self._refuse_again()
        options = self._options()
        deadline = Deadline(options.timeout)
        options = located(options, deadline)
        while True:
            with contextlib.suppress(Deserted), contextlib.ExitStack() as lock:
                if options.place is not None:
                    options.place.enter(lock, deadline)
                with _attempt(options, lock) as group:
                    self._group = group
                    Entering(group._session).join(deadline)
                _announce(group)
                return group

    def _refuse_again(self) -> None:
        """Raise if the block is entered while it is: the end of the outer one would leave the inner group."""
        if self._group is not None and not self._group._closed:
            raise RuntimeError(
                "this block was entered already: call orca.join() for each group, or use the one that it gave"
            )

    def _leave(self, group: Group) -> None:
        group._leave(orderly=False)

    if not TYPE_CHECKING:  # type checkers find the mistake by themselves

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"join() returns a block, which has no {name!r}: {_HOW}")

        def __await__(self) -> NoReturn:
            raise TypeError(f"join() returns a block, and is not awaited: {_HOW}")

    # A handler may raise right as the block is entered: `__exit__` would never be called.
    _enter = held_or_undone(_leave)(_join)

    def __enter__(self) -> Group:
        _refuse_loop("`with orca.join()`", "write `async with orca.join() as group:`")
        return self._enter()

    @held
    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._group is not None:
            self._group._leave(orderly=kind is None)

    async def __aenter__(self) -> Group:
        self._refuse_again()
        options = self._options()
        deadline = Deadline(options.timeout)
        options = await located_on_loop(options, deadline)
        while True:
            with contextlib.suppress(Deserted), contextlib.ExitStack() as lock:
                if options.place is not None:
                    await options.place.enter_on_loop(lock, deadline)
                with _attempt(options, lock) as group:
                    self._group = group
                    await Entering(group._session).join_on_loop(deadline)
                _announce(group)
                return group

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._group is not None:
            await self._group._leave_on_loop(orderly=kind is None)


@contextlib.contextmanager
def _attempt(options: JoinOptions, lock: contextlib.ExitStack) -> Iterator[Group]:
    """A group to join, which ends if that fails.

    The meeting place's `lock` is closed as soon as others can join through this member.
    """
    group = Group(options.settled())
    listeners = group._session.on_view

    def release(view: View | None) -> None:
        listeners.remove(release)
        if view is not None:  # None if the attempt has failed: the lock is needed for the next
            lock.close()

    listeners.append(release)
    try:
        group._begin()
        yield group
    except BaseException:
        group._end()
        raise


def _refuse_loop(title: str, remedy: str) -> None:
    """Raise BlockingInLoop if an event loop runs on this thread that others depend on."""
    let_cells_wait()
    refuse_on_loop(title, remedy)


def connect(joining: Joining) -> Group:
    """Join without a block: the group is left by `close`, or when the interpreter ends."""
    _refuse_loop(
        "orca.connect()",
        "write `async with orca.join() as group:`, or `await asyncio.to_thread(orca.connect, ...)`",
    )
    return open_until_exit(joining)


def _leave_again(joining: Joining, group: Group) -> None:
    atexit.unregister(group.close)
    group._leave(orderly=False)


# A handler may raise as this returns: the caller would not have the group, which it could not join again.
@held_or_undone(_leave_again)
def open_until_exit(joining: Joining) -> Group:
    """The same on whichever thread."""
    group = joining._join()
    atexit.register(group.close)
    return group


def _announce(group: Group) -> None:
    """The group was joined: one startup line, on the logger."""
    view, options, runtime = group.view, group._session.options, group._runtime
    sequencer = "witness" if view.sequencer.witness else f"rank {view.sequencer.rank}"
    in_memory = shares_memory(group._session.stack)
    _log.info(
        "%s (%s) · rank %d · %s · resilience %s",
        counted(len(view.replicas), "member"),
        options.how,
        group.rank,
        "order: shared memory" if in_memory else f"sequencer: {sequencer}",
        resilience_of(runtime.degrees.effective),
    )
    if runtime.degrees.single and runtime.degrees.group:
        runtime.degrees.note_single(None)
