"""Permits that all members acquire and release."""

from __future__ import annotations

from orcalike.errors import OrcalikeError
from orcalike.objects import language as orca
from orcalike.objects.ownership import give_slot_back, next_attempt, take_slot
from orcalike.objects.steps import Method, Steps, ask, ask_within
from orcalike.runtime.durations import Duration, in_seconds
from orcalike.runtime.operation import post
from orcalike.transport.drivers.deferral import held, held_or_undone


def _undo_enter(semaphore: Semaphore, acquired: bool) -> None:
    post(semaphore.release)


@orca.shared
class Semaphore:
    """So many permits. What a member has acquired and not released comes back when it leaves."""

    def __init__(self, value: int = 1) -> None:
        if value < 0:
            raise ValueError("semaphore initial value must be >= 0")
        self._value = value
        self._bound: int | None = None
        self._held: dict[int, int] = {}
        """By the member's incarnation: how many permits it has."""
        self._acquired: dict[int, dict[int, int]] = {}
        """By the member's incarnation and its slot for calls: the attempt that acquired last."""
        self._released: dict[int, dict[int, int]] = {}
        """By the member's incarnation and its slot for calls: the call that released last."""

    @property
    @orca.read
    def value(self) -> int:
        """How many permits are free."""
        return self._value

    def _take(self, slot: int, attempt: int) -> None:
        member = orca.caller().incarnation
        self._value -= 1
        self._held[member] = self._held.get(member, 0) + 1
        self._acquired.setdefault(member, {})[slot] = attempt

    def _lose(self, member: int, permits: int) -> None:
        """A member has so many permits no more."""
        self._held[member] -= permits
        if self._held[member] == 0:
            del self._held[member]

    @orca.write
    def _acquire(self, slot: int, attempt: int) -> bool:
        self._take(slot, attempt)
        return True

    @_acquire.when
    def _(self, slot: int, attempt: int) -> bool:
        return self._value > 0

    @orca.write
    def _try_acquire(self, slot: int, attempt: int) -> bool:
        if self._value == 0:
            return False
        self._take(slot, attempt)
        return True

    @orca.write
    def _abandon(self, slot: int, attempt: int) -> None:
        """Undo an acquisition, if it ran: its caller was interrupted, and does not know.

        If the member has no permit any more, another one has released this one.
        """
        member = orca.caller().incarnation
        acquired = self._acquired.get(member, {})
        if acquired.get(slot) == attempt:
            del acquired[slot]
            if member in self._held:
                self._lose(member, 1)
                self._value += 1

    @Method
    def acquire(self, blocking: bool = True, timeout: Duration | None = None) -> Steps[bool]:
        """Acquire a permit: whether that was done, within so many seconds."""
        if not blocking and timeout is not None:
            raise ValueError("can't specify timeout for non-blocking acquire")
        limit = in_seconds(timeout)
        slot, attempt = take_slot(), next_attempt()
        try:
            if not blocking or (limit is not None and limit <= 0):
                return (yield from ask(self._try_acquire, slot, attempt))
            return (yield from ask_within(limit, self._acquire, slot, attempt))[0]
        except BaseException:  # it may have run all the same
            post(self._abandon, slot, attempt)
            raise
        finally:
            give_slot_back(slot)

    @orca.write
    def release(self, n: int = 1) -> None:
        """Release permits: those of this member, else those that others acquired first, else new ones."""
        self._give_back(n)

    @orca.write
    def _release_once(self, slot: int, attempt: int) -> None:
        """Release a permit; the same attempt once more does nothing."""
        released = self._released.setdefault(orca.caller().incarnation, {})
        if released.get(slot) != attempt:
            released[slot] = attempt
            self._give_back(1)

    def _give_back(self, n: int) -> None:
        if n < 1:
            raise ValueError("n must be one or more")
        if self._bound is not None and self._value + n > self._bound:
            raise ValueError("Semaphore released too many times")
        self._value += n
        for holder in [orca.caller().incarnation, *self._held]:
            released = min(n, self._held.get(holder, 0))
            if released:
                self._lose(holder, released)
                n -= released

    @Method
    def _leave(self) -> Steps[None]:
        """Release a permit, also if the caller is interrupted or cancelled."""
        slot, attempt = take_slot(), next_attempt()
        try:
            yield from ask(self._release_once, slot, attempt)
        except OrcalikeError:
            raise
        except BaseException:  # it may have been withdrawn
            post(self._release_once, slot, attempt)
            raise
        finally:
            give_slot_back(slot)

    # A handler of a signal that raises as `__enter__` returns, or as `__exit__` begins, would leave it held.

    @orca.local
    @held_or_undone(_undo_enter)
    def __enter__(self) -> bool:
        return self.acquire()

    @orca.local
    @held
    def __exit__(self, *error: object) -> None:
        self._leave()

    @orca.local
    async def __aenter__(self) -> bool:
        return await self.acquire.aio()

    @orca.local
    async def __aexit__(self, *error: object) -> None:
        await self._leave.aio()

    def member_left(self, member: orca.Member) -> None:
        """What it held is free."""
        self._released.pop(member.incarnation, None)
        self._acquired.pop(member.incarnation, None)
        self._value += self._held.pop(member.incarnation, 0)

    def __repr__(self) -> str:
        most = "" if self._bound is None else f"/{self._bound}"
        return f"<objects.{type(self).__name__} at {id(self):#x}: value={self._value}{most}>"


@orca.shared
class BoundedSemaphore(Semaphore):
    """A semaphore of which no more can be released than were acquired."""

    def __init__(self, value: int = 1) -> None:
        super().__init__(value)
        self._bound = value
