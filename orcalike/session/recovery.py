"""What a program does about its group by itself: `group.reset` and `group.rejoin` (A05, A14).

A change of view needs neither: the group goes on by itself where it may. These are for a group that
may not, and for a member without which it went on.
"""

from __future__ import annotations

from collections.abc import Callable

from orcalike.runtime.dispatch import refuse_inside, refuse_to_wait
from orcalike.runtime.durations import Duration, seconds_of
from orcalike.session.session import Session
from orcalike.transport.view import View


def check_minimum(minimum: int) -> None:
    """Raise where that is no number of members."""
    if isinstance(minimum, bool) or not isinstance(minimum, int):
        raise TypeError(f"minimum={minimum!r}: it is a number of members")
    if minimum < 1:
        raise ValueError(f"minimum={minimum}: the group has 1 member at the least")


class Reset:
    """`group.reset`, for threads and coroutines."""

    def __init__(self, session: Session, lower_degrees: Callable[[float | None], None]) -> None:
        self._session = session
        self._lower_degrees = lower_degrees

    def __call__(self, *, minimum: int, timeout: Duration | None = None) -> View:
        """Rebuild a blocked group of the members that answer, on this program's word (A05).

        Only where the group is blocked: it waits for members, and `group.info().blocked` says for
        which. It goes on without them then, in a new *lineage*: what only they held is lost, and
        where they live still, they are expelled as soon as the two meet. Where several members
        reset at once the group is rebuilt once. Returns the new view. Each member that was in the
        old one logs what has happened, and its next call raises `DataLossPossible`, once, and is
        not sent; so does the next call here. What was under way goes on. From then on a degree is
        MIN(r, members - 1), as with `join(degree="available")` (Amoeba 3.1). That is all that a
        reset does where the group has a view, and only too few members for a degree: nothing is
        lost then, and the lineage stays.

        Args:
            minimum: How many members must be in it, this one and witnesses included.
            timeout: Seconds that it may take, or a text such as "10s"; None for no limit.

        Raises:
            NotPrimary: Fewer than `minimum` have answered. It may be tried again.
            OrcalikeError: The group is not blocked.
        """
        check_minimum(minimum)
        refuse_to_wait("reset")
        return self._session.reset(minimum, seconds_of(timeout), self._lower_degrees)

    async def aio(self, *, minimum: int, timeout: Duration | None = None) -> View:
        """The same, for coroutines."""
        check_minimum(minimum)
        refuse_inside("reset")
        import asyncio  # not at the top: only coroutines need it, and it takes long

        reset = self._session.reset
        return await asyncio.to_thread(reset, minimum, seconds_of(timeout), self._lower_degrees)


class Rejoin:
    """`group.rejoin`, for threads and coroutines."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, *, timeout: Duration | None = None) -> None:
        """Join again after `Expelled` or `ReplicaDivergence`, as a new incarnation with the same rank.

        The objects stay bound and get the state that the group has now. What was under way has ended
        with the same error, and is not repeated.

        Raises JoinFailed after `timeout` seconds, OrcalikeError where it is a member that serves.
        """
        refuse_to_wait("rejoin")
        self._session.rejoin(seconds_of(timeout))

    async def aio(self, *, timeout: Duration | None = None) -> None:
        """The same, for coroutines."""
        refuse_inside("rejoin")
        import asyncio  # not at the top: only coroutines need it, and it takes long

        await asyncio.to_thread(self._session.rejoin, seconds_of(timeout))
