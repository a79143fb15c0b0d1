"""A member whose connections are closed already will be seen to end in a moment: until then the group is not said to be blocked."""

from __future__ import annotations

import pytest

from orcalike.transport.membership import events
from orcalike.transport.membership.effects import ReportBlocked, Wake
from orcalike.transport.view import View
from tests.lib.agreement import FIRST, ROUND, A, B, C, D, Group


def test_an_end_that_is_about_to_be_seen_comes_before_any_report() -> None:
    """The oldest half ends: the others lose the links to both, and see the ends one after the other."""
    group = Group(A, B, C, D)
    group.crash("a", "b")
    for name in "cd":
        group[name].ending = {A.incarnation, B.incarnation}
    group.suspect("cd", "a", "b")
    group.settle()
    for name in "cd":
        group[name].died(A.incarnation, vouched=True)
        group[name].proceed()
    group.settle()
    assert [port.views for port in group.live()] == [[], []]
    for name in "cd":
        group[name].died(B.incarnation, vouched=True)
        group[name].proceed()
    group.settle()
    view = View(1, 2, ROUND | 2, (C, D), follows=FIRST)
    assert [port.views for port in group.live()] == [[view], [view]]
    assert [port.blocks for port in group.live()] == [[], []]


@pytest.mark.parametrize("ending", [True, False])
def test_what_is_missing_besides_is_reported_when_the_end_is_seen(ending: bool) -> None:
    """Nothing is certain of b."""
    group = Group(A, B, C)
    port = group["c"]
    port.ending = {A.incarnation} if ending else set()
    group.suspect("c", "a", "b")
    assert len(port.blocks) == (not ending)
    port.died(A.incarnation, vouched=True)
    port.proceed()
    assert port.blocks[-1] == ((B,), "1 of 3 members are no majority")


def test_an_end_that_does_not_come_is_waited_for_as_long_as_a_lease() -> None:
    """The kernel hangs over a file that the process had. Then it is blocked, and can be reset."""
    group = Group(A, B)
    port = group["b"]
    port.ending = {A.incarnation}
    group.suspect("b", "a")
    (at,) = (effect.at for _, _, effect in group.log if isinstance(effect, Wake))
    assert at == port.leases.span
    early = port.agreement.step(events.Proceed(), at - 1)
    assert not any(isinstance(effect, ReportBlocked) for effect in early)
    late = port.agreement.step(events.Proceed(), at)
    assert [effect.missing for effect in late if isinstance(effect, ReportBlocked)] == [(A,)]
    assert port.reset(1) is None
