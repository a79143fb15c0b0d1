"""Mutual exclusion among all threads and tasks of all members.

What a member holds is released, in the order, when the member leaves the view. Each acquisition has a
*fencing token*, larger than that of any acquisition before it: a store that gets the token with
each access, and refuses smaller ones than it has seen, is safe from a holder that was believed dead.
"""

from __future__ import annotations

import threading

from orcalike.errors import OrcalikeError
from orcalike.objects import language as orca
from orcalike.objects.ownership import Runner, give_slot_back, next_attempt, take_slot, this_runner
from orcalike.objects.steps import Method, Steps, ask, ask_within
from orcalike.runtime.durations import Duration, parse_duration
from orcalike.runtime.operation import post
from orcalike.transport.drivers.deferral import held, held_or_undone


def _undo_enter(mutex: Mutex, token: int) -> None:
    home = mutex._home()
    post(home._release_unused, this_runner(), token, home._depth)


class Mutex:
    """What `Lock` and `RLock` have in common; a subclass says which of its acquisitions nest."""

    def __init__(self) -> None:
        self._holder: orca.Member | None = None
        self._runner: Runner = 0
        """The thread or task that holds it."""
        self._depth = 0
        """How many of its acquisitions are not released."""
        self._token = 0
        self._acquired: dict[int, int] = {}
        """By the holder's slot for calls: the attempt that acquired last."""
        self._released: dict[int, int] = {}
        """By the holder's slot for calls: the call that released last, and left it held."""

    def _home(self) -> Mutex:
        """What is acquired: the mutex itself, or the one that it was given."""
        return self

    def _may_enter(self, runner: Runner) -> bool:
        return self._holder is None

    def _enter(self, runner: Runner, depth: int) -> None:
        """Take it; it is free, or this nests."""
        if self._holder is None:
            self._holder = orca.caller()
            self._runner = runner
            self._token = max(self._token + 1, orca.position())
        self._depth += depth

    def _is_owned(self, runner: Runner) -> bool:
        return self._holder is not None and self._holder == orca.caller()

    def _check_release(self, runner: Runner) -> None:
        if self._holder is None:
            raise RuntimeError("release unlocked lock")
        if self._holder != orca.caller():
            raise RuntimeError(f"cannot release a lock that {self._holder} holds")

    def _let_go(self) -> None:
        self._holder = None
        self._depth = 0
        self._acquired.clear()
        if self._released:
            self._released.clear()

    @orca.write
    def _acquire(self, runner: Runner, slot: int, attempt: int) -> bool:
        self._enter(runner, 1)
        self._acquired[slot] = attempt
        return True

    @_acquire.when
    def _(self, runner: Runner, slot: int, attempt: int) -> bool:
        return self._may_enter(runner)

    @orca.write
    def _try_acquire(self, runner: Runner, slot: int, attempt: int) -> bool:
        if not self._may_enter(runner):
            return False
        self._enter(runner, 1)
        self._acquired[slot] = attempt
        return True

    @orca.write
    def _abandon(self, slot: int, attempt: int) -> None:
        """Undo an acquisition, if it ran: its caller was interrupted, and does not know."""
        if self._holder == orca.caller() and self._acquired.get(slot) == attempt:
            del self._acquired[slot]
            self._leave()

    @orca.write
    def _release(self, runner: Runner, slot: int, attempt: int) -> None:
        self._check_release(runner)
        self._leave()
        if self._depth:  # else the token says that it is another acquisition
            self._released[slot] = attempt

    @orca.write
    def _release_once(self, runner: Runner, token: int, slot: int, attempt: int) -> None:
        """Release it, if that has not run: its caller was interrupted, and does not know."""
        if self._is_owned(runner) and self._token == token and self._released.get(slot) != attempt:
            self._leave()

    @orca.write
    def _release_unused(self, runner: Runner, token: int, depth: int) -> None:
        """Release what was just acquired, if nothing has been done with it."""
        if self._is_owned(runner) and (self._token, self._depth) == (token, depth):
            self._leave()

    def _leave(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._let_go()

    @Method
    def acquire(self, blocking: bool = True, timeout: Duration = -1) -> Steps[bool]:
        """Acquire it: whether that was done, within `timeout` seconds (-1: no limit)."""
        limit = check_limit(blocking, timeout)
        home, runner = self._home(), this_runner()
        slot, attempt = take_slot(), next_attempt()
        try:
            if not blocking or limit == 0:
                return (yield from ask(home._try_acquire, runner, slot, attempt))
            return (yield from ask_within(limit, home._acquire, runner, slot, attempt))[0]
        except BaseException:  # it may have run all the same
            post(home._abandon, slot, attempt)
            raise
        finally:
            give_slot_back(slot)

    @Method
    def release(self) -> Steps[None]:
        """Release it; any thread of the member that holds it may. Raises RuntimeError.

        It is released, too, if the caller is interrupted or cancelled.
        """
        home, runner = self._home(), this_runner()
        token = home._token
        slot, attempt = take_slot(), next_attempt()
        try:
            yield from ask(home._release, runner, slot, attempt)
        except OrcalikeError:
            raise
        except BaseException:  # it may have been withdrawn: no caller would release it any more
            post(home._release_once, runner, token, slot, attempt)
            raise
        finally:
            give_slot_back(slot)

    @orca.read
    def locked(self) -> bool:
        """Whether it is held."""
        return self._home()._holder is not None

    @property
    @orca.read
    def holder(self) -> orca.Member | None:
        """The member that holds it, None for none."""
        return self._home()._holder

    @property
    @orca.read
    def token(self) -> int:
        """The fencing token of the acquisition that was last."""
        return self._home()._token

    # A handler of a signal that raises as `__enter__` returns, or as `__exit__` begins, would leave it held.

    @orca.local
    @held_or_undone(_undo_enter)
    def __enter__(self) -> int:
        """Acquire it; returns the fencing token."""
        self.acquire()
        return self._home().token

    @orca.local
    @held
    def __exit__(self, *error: object) -> None:
        self.release()

    @orca.local
    async def __aenter__(self) -> int:
        await self.acquire.aio()
        return self._home().token

    @orca.local
    async def __aexit__(self, *error: object) -> None:
        await self.release.aio()

    def member_left(self, member: orca.Member) -> None:
        """What it held is free."""
        if self._holder == member:
            self._let_go()

    def __repr__(self) -> str:
        return describe(self, self._holder, "")


def check_limit(blocking: bool, timeout: Duration) -> float | None:
    """Raise ValueError and OverflowError as `threading.Lock.acquire` does."""
    limit = parse_duration(timeout) if isinstance(timeout, str) else timeout
    if not blocking and limit != -1:
        raise ValueError("can't specify a timeout for a non-blocking call")
    if limit < 0 and limit != -1:
        raise ValueError("timeout value must be a non-negative number")
    if limit > threading.TIMEOUT_MAX:
        raise OverflowError("timeout value is too large")
    return None if limit == -1 else limit


def describe(lock: object, holder: orca.Member | None, more: str) -> str:
    """What `repr` shows of a lock."""
    state, by = ("unlocked", "") if holder is None else ("locked", f"held by {holder} ")
    return f"<{state} {type(lock).__name__} object {more}{by}at {id(lock):#x}>"
