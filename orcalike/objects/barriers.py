"""A meeting of so many threads or tasks of any members."""

from __future__ import annotations

from threading import BrokenBarrierError

from orcalike.objects import language as orca
from orcalike.objects.ownership import next_attempt
from orcalike.objects.steps import Method, Steps, ask, ask_within
from orcalike.runtime.durations import Duration, in_seconds
from orcalike.runtime.operation import post


@orca.shared
class Barrier:
    """`wait` returns when `parties` have called it; then it can be used again.

    It breaks, for all that wait, when a `wait` is over its limit, or when a member that waits leaves.
    To arrive is one write, to wait sends nothing.
    """

    def __init__(self, parties: int, timeout: Duration | None = None) -> None:
        if parties < 1:
            raise ValueError("parties must be > 0")
        self._parties = parties
        self._timeout = in_seconds(timeout)
        self._arrived: dict[tuple[int, int], int] = {}
        """The place of each that waits, by its member's incarnation and that member's number for it."""
        self._round = 0
        """How many meetings, and resets, there were."""
        self._broken = False
        self._unmet_rounds: list[int] = []
        """The rounds that a break or a reset has ended, of the last few."""

    @property
    @orca.read
    def parties(self) -> int:
        """How many it takes."""
        return self._parties

    @property
    @orca.read
    def n_waiting(self) -> int:
        """How many wait."""
        return len(self._arrived)

    @property
    @orca.read
    def broken(self) -> bool:
        """Whether it is broken, until it is reset."""
        return self._broken

    @orca.write
    def _arrive(self, attempt: int) -> tuple[int, int]:
        """(round, place in it); the last one ends the round."""
        if self._broken:
            raise BrokenBarrierError
        taken = [*self._arrived.values()]
        place = next(each for each in (len(taken), *range(len(taken))) if each not in taken)
        self._arrived[orca.caller().incarnation, attempt] = place
        round = self._round
        if len(self._arrived) == self._parties:
            self._arrived = {}
            self._round += 1
        return round, place

    @orca.write
    def _abandon(self, attempt: int) -> None:
        """Undo an arrival, if the others have not met it: its caller was interrupted."""
        self._arrived.pop((orca.caller().incarnation, attempt), None)

    @orca.read
    def _met(self, round: int) -> bool:
        """Wait until a round is over: whether all have met."""
        return self._round > round and round not in self._unmet_rounds

    @_met.when
    def _(self, round: int) -> bool:
        return self._round > round

    @orca.write
    def _give_up(self, round: int) -> bool:
        """Break it, if the round is not over: whether all have met."""
        if self._round == round:
            self._break()
        return round not in self._unmet_rounds

    def _break(self) -> None:
        self._broken = True
        self._end_round()

    def _end_round(self) -> None:
        """End it for those that have arrived, also for one that does not wait yet."""
        if self._arrived:
            self._unmet_rounds = [*self._unmet_rounds[-15:], self._round]
            self._round += 1
        self._arrived = {}

    @Method
    def wait(self, timeout: Duration | None = None) -> Steps[int]:
        """Wait for the others; returns a number below `parties`, another one for each.

        A caller that is interrupted or cancelled while it waits has not arrived. Raises
        threading.BrokenBarrierError.
        """
        seconds = self._timeout if timeout is None else in_seconds(timeout)
        limit = None if seconds is None else max(seconds, 0.0)
        attempt = next_attempt()
        try:
            round, place = yield from ask(self._arrive, attempt)
            over, met = yield from ask_within(limit, self._met, round)
            if not over:
                met = yield from ask(self._give_up, round)
        except BrokenBarrierError:
            raise
        except BaseException:  # it may have arrived all the same
            post(self._abandon, attempt)
            raise
        if not met:
            raise BrokenBarrierError
        return place

    @orca.write
    def reset(self) -> None:
        """Make it as new; callers that wait get BrokenBarrierError."""
        self._end_round()
        self._broken = False

    @orca.write
    def abort(self) -> None:
        """Break it; callers that wait, or call `wait` later, get BrokenBarrierError."""
        self._break()

    def member_left(self, member: orca.Member) -> None:
        """If it waited, the others would wait for good."""
        if any(incarnation == member.incarnation for incarnation, _ in self._arrived):
            self._break()

    def __repr__(self) -> str:
        state = "broken" if self._broken else f"waiters={len(self._arrived)}/{self._parties}"
        return f"<objects.{type(self).__name__} at {id(self):#x}: {state}>"
