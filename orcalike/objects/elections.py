"""One leader among the members that stand for it."""

from __future__ import annotations

from orcalike.errors import OrcalikeError
from orcalike.objects import language as orca
from orcalike.objects.ownership import next_attempt
from orcalike.objects.steps import Method, Steps, ask, ask_within
from orcalike.runtime.durations import Duration, seconds_of
from orcalike.runtime.operation import post
from orcalike.transport.drivers.deferral import held, held_or_undone


def _undo_enter(election: Election, term: int) -> None:
    post(election.resign)


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
        self._stood: dict[int, int] = {}
        """The call that had a member stand, by incarnation; 0 for several, or for good."""
        self._since: dict[int, int] = {}
        """Which of all that have begun to stand a member is, by incarnation."""
        self._begun = 0
        """How many have begun to stand."""

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
        return self._stand(0) is not None

    @orca.write
    def _stand(self, attempt: int) -> int | None:
        """Stand for it: the term, if this member leads at once."""
        member = orca.caller()
        if member not in self._standing:
            self._standing = [*self._standing, member]
            self._stood[member.incarnation] = attempt
            self._begun += 1
            self._since[member.incarnation] = self._begun
            if len(self._standing) == 1:
                self._term += 1
        else:
            self._stood[member.incarnation] = 0
        return self._term if self._standing[0] == member else None

    @orca.write
    def _abandon(self, attempt: int) -> None:
        """Stand no more, if only that call had this member stand: its caller was interrupted."""
        if self._stood.get(orca.caller().incarnation) == attempt:
            self._remove(orca.caller())

    @orca.write
    def resign(self) -> None:
        """Lead no more, and do not stand."""
        self._remove(orca.caller())

    @orca.read
    def _standing_since(self) -> int:
        """Which of all that have begun to stand this member is; 0 if it does not stand."""
        return self._since.get(orca.caller().incarnation, 0)

    @orca.write
    def _resign_since(self, since: int) -> None:
        """Resign, if that has not run: its caller was interrupted, and does not know."""
        if self._since.get(orca.caller().incarnation) == since:
            self._remove(orca.caller())

    def _remove(self, member: orca.Member) -> None:
        led = bool(self._standing) and self._standing[0] == member
        self._standing = [each for each in self._standing if each != member]
        self._stood.pop(member.incarnation, None)
        self._since.pop(member.incarnation, None)
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

        It stands on when the limit has passed, and not when the caller is interrupted or cancelled,
        unless it stood before, or another call has had it stand meanwhile.
        """
        limit = seconds_of(timeout)  # which may raise: before this member stands
        attempt = next_attempt()
        try:
            term = yield from ask(self._stand, attempt)
            if term is None:
                _, term = yield from ask_within(limit, self._wait)
        except BaseException:  # it may stand all the same
            post(self._abandon, attempt)
            raise
        return term

    @orca.read
    def changed(self, term: int) -> int:
        """Wait here until the term is another one than this; returns it."""
        return self._term

    @changed.when
    def _(self, term: int) -> bool:
        return self._term != term

    @Method
    def _leave(self) -> Steps[None]:
        """Resign, also if the caller is interrupted or cancelled."""
        since = self._standing_since()
        try:
            yield from ask(self.resign)
        except OrcalikeError:
            raise
        except BaseException:
            # It may have been withdrawn, and another call may have it stand meanwhile.
            post(self._resign_since, since)
            raise

    # A handler of a signal that raises as `__enter__` returns, or as `__exit__` begins, would leave it leading.

    @orca.local
    @held_or_undone(_undo_enter)
    def __enter__(self) -> int:
        """Wait until this member leads: its term."""
        term = self.campaign()
        assert term is not None
        return term

    @orca.local
    @held
    def __exit__(self, *error: object) -> None:
        self._leave()

    @orca.local
    async def __aenter__(self) -> int:
        term = await self.campaign.aio()
        assert term is not None
        return term

    @orca.local
    async def __aexit__(self, *error: object) -> None:
        await self._leave.aio()

    def member_left(self, member: orca.Member) -> None:
        """The next one leads."""
        self._remove(member)

    def __repr__(self) -> str:
        leader = self._standing[0] if self._standing else None
        return f"<Election: term {self._term}, {leader or 'no member'} leads>"
