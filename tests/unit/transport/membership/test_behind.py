"""A member whose state is whole, but for what was tentative before it (I8)."""

from __future__ import annotations

import pytest

from orcalike.transport.application_state import State
from orcalike.transport.membership import events
from tests.lib.agreement import A, B, C, Group


def test_what_is_tentative_goes_on_with_a_member_that_was_behind() -> None:
    """By the reports of those that leave it has what it lacked."""
    group = Group(A, B)
    group["b"].state = State.BEHIND
    group["a"].ask_leave(A.incarnation)
    group["a"].proceed()
    group.settle()
    assert [view.members for view in group["b"].views] == [(B,)]
    assert group["a"].ends is False


def test_a_member_that_was_behind_is_asked_again() -> None:
    """While the group is blocked it may get what it lacked."""
    group = Group(A, B, C)
    group["a"].state = group["b"].state = State.BEHIND
    group.crash("c")
    group.suspect("ab", "c")
    group.settle()
    assert not group["a"].views
    assert "whole state" in group["a"].blocks[-1][1]
    group["b"].state = State.WHOLE
    group["a"].step(events.AskAgain())
    group.settle()
    assert [view.members for view in group["a"].views] == [(A, B)]


def test_a_member_that_was_behind_gets_what_others_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The member that holds it may have no state, and so cannot go on alone; nor can the other one."""
    group = Group(A, B, C, a=3, b=1)
    group["a"].state = State.NONE
    behind = group["b"]
    states = {False: State.BEHIND, True: State.WHOLE}
    monkeypatch.setattr(behind, "has_state", lambda: states[behind.held == 3])
    group.crash("c")
    group.suspect("ab", "c")
    group.settle()
    assert not group["a"].views
    group["a"].step(events.AskAgain())
    group.settle()
    assert behind.held == 3
    assert [view.members for view in group["a"].views] == [(A, B)]
