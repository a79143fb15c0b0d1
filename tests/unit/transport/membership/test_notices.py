"""Members that are notified that the group went on without them: whose word counts, and when."""

from __future__ import annotations

import pytest

from orcalike.transport.view import Member, View
from tests.lib.agreement import FIRST, A, B, C, D, Group, Port

NEXT = View(1, 2, 0, (A, B, D), follows=FIRST)
"""The view without c."""


def leaving() -> tuple[Group, Port]:
    """c leaves, and has reported to a, which leads, as the others have."""
    group = Group(A, B, C, D)
    here = group["a"]
    here.ask_leave(C.incarnation)
    here.proceed()
    for name in "abcd":
        group.pass_on(name)
    return group, group["c"]


@pytest.mark.parametrize("sender", [A, B, None])
def test_a_member_that_does_not_leave_is_out_at_once(sender: Member | None) -> None:
    _, port = leaving()
    port.notified_out(NEXT, sender, leaves=False)
    assert port.out_by == NEXT


def test_one_that_leaves_has_it_from_the_one_that_leads() -> None:
    """Which sends what comes before the view, too; the word of another one is forgotten then."""
    group, port = leaving()
    port.notified_out(NEXT, B, leaves=True)
    port.proceed()
    assert port.out_by is None
    group.settle()
    assert [view.members for view in port.views] == [(A, B, D)]
    assert port.out_by is None
    assert port.agreement.view is None


def test_one_that_leaves_is_out_if_the_one_that_leads_says_so() -> None:
    _, port = leaving()
    port.notified_out(NEXT, A, leaves=True)
    assert port.out_by == NEXT


@pytest.mark.parametrize("sender", [B, None])
def test_one_that_leaves_is_out_once_the_one_that_leads_is(sender: Member | None) -> None:
    """It will not say so any more; whether it is silent, or has ended, makes no difference."""
    _, port = leaving()
    port.notified_out(NEXT, sender, leaves=True)
    port.suspect([A.incarnation])
    assert port.out_by is None
    port.proceed()
    assert port.out_by == NEXT
    assert not port.views


def test_one_that_leaves_and_was_not_asked_is_out_at_once() -> None:
    """A leader that has not asked it, and went on, did not wait for it."""
    port = Group(A, B, C, D)["c"]
    port.notified_out(NEXT, B, leaves=True)
    assert port.out_by == NEXT


def test_one_that_leads_itself_and_leaves_is_out_at_once() -> None:
    port = Group(C, A, B, D)["c"]
    port.ask_leave(C.incarnation)
    port.proceed()
    assert port.ballot is not None
    port.notified_out(NEXT, B, leaves=True)
    assert port.out_by == NEXT
