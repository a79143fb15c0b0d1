"""A reset as the program that asks for it sees it, whatever the members answer, and how often they must be asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from orcalike.errors import Expelled, NotPrimary, OrcalikeError
from orcalike.session.resetting import ASK_AGAIN, TRY_AGAIN, reset
from orcalike.session.shortage import Shortage
from orcalike.transport.membership.coordinator import UNDER_WAY
from orcalike.transport.view import Member, View
from tests.lib.time_limits import LIMIT

A, B = (Member(f"unix:/run/{rank}", 10 + rank, rank) for rank in range(2))
BOTH, ONE = View(1, 1, 0, (A, B)), View(2, 2, 1, (A,))
TOO_FEW = "degree 1 takes 2 members with replicas, and the view has 1"


class Blocked:
    """A session of a group that is blocked, and what its members answer to each reset, in turn."""

    def __init__(self, *answers: Callable[[Blocked], None] | None) -> None:
        self.answers = list(answers)
        self.asked: list[int] = []
        self.slept: list[float] = []
        self.too_few: str | None = None
        self.shortage = Shortage("jobs", lambda: self.too_few)
        self.shortage.blocked = (B,), "1 of 2 members are no majority"
        self.view: View | None = BOTH
        self.expelled = self.exit_reason = self.reset_refused = None
        self.pump = self.stack = self.waiting = self

    @property
    def blocked(self) -> object:
        return self.shortage.blocked

    def call(self, function: Callable[[int], None], minimum: int) -> None:
        function(minimum)

    def reset(self, minimum: int) -> None:
        self.asked.append(minimum)
        self.answer = self.answers.pop(0) if self.answers else None

    def wait(self, condition: Callable[[], bool], timeout: float, what: str) -> bool:
        """The answer comes, or the time passes."""
        assert not condition()
        if self.answer is None:
            self.slept.append(timeout)
            return False
        self.answer(self)
        assert condition(), "what was answered ends the wait"
        return True

    def pause(self, seconds: float) -> None:
        self.slept.append(seconds)

    def ask(self, minimum: int = 1, timeout: float | None = LIMIT) -> View:
        session: Any = self
        return reset(session, minimum, timeout, lambda timeout: pytest.fail("nothing is lowered"))


def installed(group: Blocked) -> None:
    group.view, group.shortage.blocked = ONE, None


def refused(why: str) -> Callable[[Blocked], None]:
    return lambda group: setattr(group, "reset_refused", why)


def expelled(group: Blocked) -> None:
    group.exit_reason = group.expelled = "view 3 went on without this member"  # type: ignore[assignment]


def blocked_no_more(group: Blocked) -> None:
    """The others are back, and the group went on before the reset was begun."""
    group.shortage.blocked = None
    group.reset_refused = "the group is not blocked"  # type: ignore[assignment]


def test_the_view_in_which_the_group_goes_on_is_returned() -> None:
    group = Blocked(installed)
    assert group.ask(minimum=1) is ONE
    assert (group.asked, group.slept) == ([1], [])


def test_what_is_not_answered_is_asked_for_again() -> None:
    group = Blocked(None, None, installed)
    assert group.ask(timeout=None) is ONE
    assert (group.asked, group.slept) == ([1, 1, 1], [ASK_AGAIN] * 2)


def test_a_change_of_view_that_is_in_the_way_is_waited_for() -> None:
    group = Blocked(refused(UNDER_WAY), refused(UNDER_WAY), installed)
    assert group.ask() is ONE
    assert (group.asked, group.slept) == ([1, 1, 1], [TRY_AGAIN] * 2)


def test_too_few_that_answer_are_an_error_at_once() -> None:
    group = Blocked(refused("1 member has answered, 2 are asked for"))
    with pytest.raises(NotPrimary, match="not reset: 1 member has answered, 2 are asked for"):
        group.ask(minimum=2)
    assert group.asked == [2]


def test_a_group_that_went_on_meanwhile_gives_its_view() -> None:
    """Its others are back: that a reset is refused then is no matter of the program."""
    group = Blocked(blocked_no_more, installed)
    assert group.ask() is ONE


def test_a_member_that_is_expelled_meanwhile_learns_it() -> None:
    group = Blocked(expelled)
    with pytest.raises(Expelled, match="went on without this member"):
        group.ask()


def test_the_error_says_what_the_group_waits_for_when_the_time_is_over() -> None:
    group = Blocked()
    with pytest.raises(NotPrimary, match=r"not reset within 0\.001 s: it waits for .*1 of 2"):
        group.ask(timeout=0.001)
    assert all(0 < slept <= 0.001 for slept in group.slept), "no longer than the limit"


@pytest.mark.parametrize("view", [None, BOTH])
def test_a_group_that_goes_on_is_not_reset(view: View | None) -> None:
    group = Blocked()
    group.view, group.shortage.blocked = view, None
    with pytest.raises(OrcalikeError, match="not blocked"):
        group.ask()
    assert group.asked == []


@pytest.mark.parametrize("minimum", [2, 3])
def test_a_group_with_too_few_members_for_a_degree_takes_them_for_enough(minimum: int) -> None:
    """Its lineage stays; members that are asked for must be in its view."""
    group: Any = Blocked()
    group.shortage.blocked, group.too_few = None, TOO_FEW
    lowered: list[float | None] = []

    def lower(timeout: float | None) -> None:
        lowered.append(timeout)
        group.too_few = None

    if minimum > len(BOTH.members):
        with pytest.raises(NotPrimary, match="2 members present, 3 asked for"):
            reset(group, minimum, 5.0, lower)
        assert lowered == []
    else:
        assert reset(group, minimum, 5.0, lower) is BOTH
        assert lowered == [5.0]
    assert group.asked == []


def test_a_blocked_group_that_lacks_members_for_a_degree_too_is_reset() -> None:
    group = Blocked(installed)
    group.too_few = TOO_FEW
    assert group.ask() is ONE
    assert group.asked == [1]
