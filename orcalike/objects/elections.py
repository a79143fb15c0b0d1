"""One leader among the members that stand for it."""

from __future__ import annotations

from orcalike.objects import language as orca
from orcalike.objects.steps import Method, Steps, ask, ask_within
from orcalike.runtime.durations import Duration, seconds_of


@orca.shared
class Election:
    """The member that stood first leads until it resigns or leaves; then the next one does.

    Each leader has a *term*, a number larger than any before it. All members see the same leaders in
    the same order. A leader that was cut off may not know yet that it leads no more: what must not be
    done twice carries the term, and its receiver refuses a smaller one than it has seen.
    """

    def __init__(self) -> None:
        self._standing: list[orca.Member] = []
        """The leader first."""
        self._term = 0

    @orca.read
    def leader(self) -> orca.Member | None:
        """The leader, None if no member stands."""
        return self._standing[0] if self._standing else None

    @orca.read
    def leads(self) -> bool:
        """Whether this member leads."""
        return bool(self._standing) and self._standing[0] == orca.caller()

    @property
    @orca.read
    def term(self) -> int:
        """The term of the leader, or of the one that led last."""
        return self._term

    @orca.write
    def stand(self) -> bool:
        """Stand for it: whether this member leads at once."""
        return self._stand() is not None

    @orca.write
    def _stand(self) -> int | None:
        """Stand for it: the term, if this member leads at once."""
        if orca.caller() not in self._standing:
            self._standing = [*self._standing, orca.caller()]
            if len(self._standing) == 1:
                self._term += 1
        return self._term if self._standing[0] == orca.caller() else None

    @orca.write
    def resign(self) -> None:
        """Lead no more, and do not stand."""
        self._remove(orca.caller())

    def _remove(self, member: orca.Member) -> None:
        led = bool(self._standing) and self._standing[0] == member
        self._standing = [each for each in self._standing if each != member]
        if led and self._standing:
            self._term += 1

    @orca.read
    def _wait(self) -> int:
        return self._term

    @_wait.when
    def _(self) -> bool:
        return bool(self._standing) and self._standing[0] == orca.caller()

    @Method
    def campaign(self, timeout: Duration | None = None) -> Steps[int | None]:
        """Stand, and wait until this member leads: its term; None if the time limit passed.

        It stands on when the limit has passed.
        """
        limit = seconds_of(timeout)  # which may raise: before this member stands
        term = yield from ask(self._stand)
        if term is None:
            _, term = yield from ask_within(limit, self._wait)
        return term

    @orca.read
    def changed(self, term: int) -> int:
        """Wait here until the term is another one than this; returns it."""
        return self._term

    @changed.when
    def _(self, term: int) -> bool:
        return self._term != term

    @orca.local
    def __enter__(self) -> int:
        """Wait until this member leads: its term."""
        term = self.campaign()
        assert term is not None
        return term

    @orca.local
    def __exit__(self, *error: object) -> None:
        self.resign()

    @orca.local
    async def __aenter__(self) -> int:
        term = await self.campaign.aio()
        assert term is not None
        return term

    @orca.local
    async def __aexit__(self, *error: object) -> None:
        await self.resign.aio()

    def member_left(self, member: orca.Member) -> None:
        """The next one leads."""
        self._remove(member)

    def __repr__(self) -> str:
        leader = self._standing[0] if self._standing else None
        return f"<Election: term {self._term}, {leader or 'no member'} leads>"
