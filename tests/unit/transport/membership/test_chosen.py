"""A value that enough have accepted, and that is not decided on yet: those that know so need no others (CHOSEN)."""

from __future__ import annotations

from orcalike.transport.membership import events
from orcalike.transport.membership.ballot import Ballot, Report
from orcalike.transport.membership.effects import Grant, Send
from orcalike.transport.membership.messages import Chosen, Value
from orcalike.transport.view import Member, View
from tests.lib.agreement import FIRST, ROUND, A, B, C, Group


def test_what_enough_have_accepted_is_decided_on_by_one_that_knows_so() -> None:
    """a waits for the lease of c, says so to b, and ends; b is no majority, and has its own leases to wait for."""
    group = Group(A, B, C)
    group["a"].leased = group["b"].leased = {C.incarnation: 5_000}
    group.crash("c")
    group.suspect("ab", "c")
    group.settle()
    group.crash("a")
    port = group["b"]
    port.died(A.incarnation, vouched=False)
    port.proceed()
    assert port.blocks == []
    assert port.views == [], "c may count on its lease to b"
    port.step(events.LeasesEnded(()))
    port.proceed()
    assert port.views == [View(1, 2, ROUND, (A, B), follows=FIRST)]


def test_none_is_notified_while_the_acceptances_of_others_may_be_under_way() -> None:
    """b has accepted, and c is about to; but if it does not for a quarter of a lease, it may not for long."""
    group = Group(A, B, C)
    port = group["a"]
    port.leased = {C.incarnation: 5_000}
    port.ask_leave(C.incarnation)
    port.proceed()
    for name in "abca":
        group.pass_on(name)
    group.pass_on("b")
    assert port.views == []
    assert not port.sent
    assert not port.granting
    late = port.agreement.step(events.Proceed(), port.leases.grace)
    assert Send(1, Chosen(ROUND)) in late
    assert Grant(True, (C.incarnation,)) in late


def test_one_that_learns_late_that_its_value_is_chosen_reports_it_once_more() -> None:
    """c has promised b, which is not enough with it, before it receives the last word of a; or it is b that does."""
    for late in "cb":
        group = Group(A, B, C, Member("sim:d", 3, 3))
        group["a"].leased = {3: 5_000}
        group.crash("d")
        group.suspect("abc", "d")
        for name in "abcabc":
            group.pass_on(name)
        group.crash("a")
        group.suspect("bc", "a", "d")
        group.settle()
        assert [port.views for port in group.live()] == [[], []]
        group[late].receive(0, Chosen(ROUND))
        group[late].proceed()
        group.settle()
        assert [len(port.views) for port in group.live()] == [1, 1]


def test_after_a_reset_another_value_is_not_the_chosen_one() -> None:
    """It may have been decided on by a reset of others: then it counts, and takes all that have promised."""
    chosen, other = (
        Value(View(1, 2, each, (A, B), follows=FIRST), b"") for each in (ROUND, ROUND | 1)
    )
    ballot = Ballot(3 * ROUND, View(1, 1, 0, (A, B, C)))
    ballot.reports = {0: Report(b"", (ROUND, chosen), chosen=True)}
    assert ballot.is_chosen
    ballot.reports[1] = Report(b"", (2 * ROUND | 1, chosen))
    assert ballot.is_chosen
    ballot.reports[1] = Report(b"", (2 * ROUND | 1, other))
    assert not ballot.is_chosen
