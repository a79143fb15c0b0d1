"""What a member that has ended has left with the layers above may vouch for it (H13, ADR-26)."""

from __future__ import annotations

import pytest

from orcalike.transport.view import Member, View
from tests.lib.agreement import FIRST, ROUND, A, B, C, Group


@pytest.mark.parametrize("when", ["it is seen to end", "this one reports"])
def test_what_the_dead_has_left_may_vouch_for_it(when: str) -> None:
    """As a word in memory that it would have written before it had gone on alone."""
    group = Group(A, B)
    group.crash("a")
    known = {A.incarnation}
    group["b"].vouched = known if when == "it is seen to end" else set()
    group["b"].died(A.incarnation, vouched=False)
    group["b"].vouched = known
    group.suspect("b", "a")
    assert group["b"].views == [View(1, 2, ROUND | 1, (B,), follows=FIRST)]


@pytest.mark.parametrize("lost", ["silent", "dead"])
def test_one_that_goes_on_without_a_member_that_may_live_says_so_before(lost: str) -> None:
    group = Group(A, B, C)
    group.crash("c")
    if lost == "dead":
        for name in "ab":
            group[name].died(C.incarnation, vouched=True)
    group.suspect("ab", "c")
    group.settle()
    assert len(group["a"].views) == 1
    assert group["a"].alone == ([(FIRST, (C.incarnation,))] if lost == "silent" else [])
    assert group["b"].alone == [], "it decides nothing"


def test_what_the_dead_has_left_counts_though_this_one_has_reported() -> None:
    """c has promised b before it sees a end; none saw a in time."""
    members = [Member(f"sim:{name}", number, number) for number, name in enumerate("abcd")]
    group = Group(*members)
    group.crash("a", "d")
    for name in "bc":
        group[name].died(3, vouched=True)
    group["b"].died(0, vouched=False)
    group.suspect("bc", "a", "d")
    group.settle()
    assert [port.views for port in group.live()] == [[]] * 2
    group["c"].vouched = {0}
    group["c"].died(0, vouched=False)
    group.settle()
    assert [port.views[0].members for port in group.live()] == [tuple(members[1:3])] * 2
