"""The agreement on views: steps and effects, with a layer that carries them out and a network by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from orcalike.transport.application_state import State
from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership import events
from orcalike.transport.membership.ballot import Ballot, Report
from orcalike.transport.membership.messages import (
    Accept,
    ControlMessage,
    Denied,
    Expelled,
    Flush,
    FlushOk,
    Install,
    Promised,
    Propose,
    Ship,
    Value,
    unpack,
)
from orcalike.transport.view import Member, View
from tests.lib.agreement import FIRST, ROUND, ROUNDS, A, B, C, D, Group, flush


def proposing() -> Group:
    """A leader that has proposed the view that lets the third in and the second out."""
    group = Group(A, B, D)
    here = group["a"]
    assert here.ask_join(C, {}) is None
    here.ask_leave(B.incarnation)
    here.proceed()
    for name in "abd":
        group.pass_on(name)
    assert here.ballot is not None
    assert here.ballot.value is not None
    return group


# Joins and leaves.


def test_joins_and_leaves_change_one_view() -> None:
    group = proposing()
    group.settle()
    (view,) = group["a"].views
    assert view.members == (A, D, C)
    assert view.identity == (1, 2, ROUND)
    assert group["b"].views == group["d"].views == [view]
    assert ("sim:c", Install(view, b"\x01")) in group["a"].contacted


def test_a_joiner_that_asks_again_while_it_is_let_in_joins_once() -> None:
    group = proposing()
    here = group["a"]
    assert here.ask_join(C, {}) is None
    here.ask_leave(B.incarnation)
    group.settle()
    assert [view.members for view in group["a"].views] == [(A, D, C)]
    here.proceed()
    assert not group["a"].sent, "no member asks for anything more"


def test_a_rank_that_is_about_to_be_taken_is_refused() -> None:
    here = proposing()["a"]
    again = Member("sim:x", 7, C.rank)
    assert here.ask_join(again, {}) == "rank 2 is in the group already"
    other = Member("sim:y", 8, B.rank)
    assert here.ask_join(other, {}) is None, "its holder is about to be gone"


def test_another_configuration_is_refused() -> None:
    here = Group(A)["a"]
    assert here.ask_join(B, {"size": 4}) == "config: the group has size=3, not 4"
    assert here.ask_join(B, {"size": 3}) is None


def test_a_process_that_is_not_let_in_sets_no_option_of_the_group() -> None:
    here = Group(A, B)["a"]
    assert here.ask_join(Member("sim:x", 7, B.rank), {"detection": "9s"}), "its rank is taken"
    assert here.ask_join(C, {"detection": "2s"}) is None


def test_a_joiner_without_a_rank_gets_one_that_is_free() -> None:
    group = Group(A, C)
    here = group["a"]
    for number in (7, 8):
        assert here.ask_join(Member(f"sim:{number}", number), {}) is None
    here.proceed()
    group.settle()
    assert [member.rank for member in group["a"].views[0].members] == [0, 2, 1, 3]


def test_joiners_of_a_group_that_all_leave_are_denied() -> None:
    group = Group(A)
    here = group["a"]
    assert here.ask_join(C, {}) is None
    here.ask_leave(A.incarnation)
    here.proceed()
    assert group["a"].contacted == [("sim:c", Denied("the group has ended"))]
    assert [view.members for view in group["a"].views] == [()]


# Crashes.


def test_a_suspected_member_is_out_of_the_next_view_and_notified() -> None:
    group = Group(A, B, C)
    group.crash("c")
    group.suspect("ab", "c")
    group.settle()
    assert [port.views[-1].members for port in group.live()] == [(A, B)] * 2
    assert [type(message) for _, message in group["a"].contacted] == [Expelled]


def test_the_certainly_dead_are_not_asked() -> None:
    group = Group(A, B)
    group.crash("b")
    group["a"].died(B.incarnation, vouched=False)
    group["a"].proceed()
    assert [view.members for view in group["a"].views] == [(A,)]
    assert not group["a"].sent
    assert not group["a"].contacted


def test_a_suspect_that_answers_stays() -> None:
    group = Group(A, B, C)
    group.suspect("a", "c")
    group.pass_on("a", "c")
    group.pass_on("c")
    group.settle()
    assert group["a"].views[0].members == (A, B, C)


def test_a_leader_that_did_not_answer_in_time_is_followed_when_it_leads_after_all() -> None:
    """Else b and c, of a blocked group, would lead in turn for as long as it is blocked."""
    group = Group(A, B, C, D)
    group.suspect("c", "a", "b")
    group["c"].overdue()
    group["c"].proceed()
    assert group["c"].leader == 2
    group.suspect("c", "a")
    assert group["c"].leader == 2, "b beats again, and has not answered"
    group.suspect("b", "a")
    group.pass_on("b", "c")
    assert group["c"].leader == 1
    group.pass_on("c", "b")  # that it has promised a higher ballot, its own
    group.pass_on("b", "c")
    group["c"].proceed()
    assert group["c"].ballot is None


def test_the_next_in_age_leads_when_the_oldest_is_gone() -> None:
    group = Group(A, B, C)
    group.crash("a")
    group.suspect("bc", "a")
    group.settle()
    view = View(1, 2, ROUND | 1, (B, C), follows=FIRST)
    assert [port.views for port in group.live()] == [[view]] * 2


def test_packets_come_from_members_that_have_them_to_members_that_lack_them() -> None:
    """The flush: c has two packets of the dead sequencer that b lacks, and b leads (H62)."""
    group = Group(A, B, C, D, c=3)
    group.crash("a")
    group.suspect("bcd", "a")
    group.settle()
    assert [port.held for port in group.live()] == [3, 3, 3]
    assert [len(port.views) for port in group.live()] == [1, 1, 1]


def test_no_member_accepts_without_the_packets() -> None:
    """H12 b: the number of a view is no packet."""
    group = Group(A, B)
    here = group["b"]
    here.receive(0, Flush(ROUND, b"\x03", ()))
    value = Value(View(1, 2, ROUND, (A, B), follows=FIRST), b"\x03")
    here.receive(0, Propose(ROUND, value))
    assert here.accepted is None
    for number in (1, 2):
        assert Accept(ROUND) not in [message for _, message in group["b"].sent]
        here.receive(0, Ship(bytes([number])))
    assert here.accepted is not None
    assert (0, Accept(ROUND)) in group["b"].sent


def test_a_value_that_may_have_been_decided_is_carried_on() -> None:
    """a lets d in, b accepts, and a dies; c never heard of it."""
    group = Group(A, B, C)
    group["a"].ask_join(D, {})
    group["a"].proceed()
    for name in "abac":
        group.pass_on(name, "b" if name == "a" else "a")
    group.pass_on("a", "c", count=1)
    group.pass_on("c")
    group.pass_on("a", "b")
    assert group["b"].accepted is not None
    group.crash("a")
    group.suspect("bc", "a")
    group.settle()
    assert group["b"].views == group["c"].views
    assert group["b"].views[0].members == (A, B, C, D), "as it was proposed"
    assert ("sim:d", Install(group["b"].views[0], b"\x01")) in group["b"].contacted


def test_the_highest_of_several_accepted_values_is_carried_on() -> None:
    one, other = (Value(View(1, 2, ballot, (A, B)), b"") for ballot in (ROUND, ROUND | 1))
    ballot = Ballot(2 * ROUND, View(1, 1, 0, (A, B)))
    ballot.reports = {0: Report(b"", (ROUND, one)), 1: Report(b"", (ROUND | 1, other))}
    assert ballot.bound_to() == other
    ballot.reports = {0: Report(b"")}
    assert ballot.bound_to() is None


def test_a_leader_is_accepted_only_by_members_that_suspect_all_older_ones() -> None:
    group = Group(A, B, C)
    group.suspect("b", "a")
    group.pass_on("b", "c")
    assert group["c"].agreement.participant.promised == 0
    group.suspect("c", "a")
    assert group["c"].agreement.participant.promised == ROUND | 1


def test_an_older_ballot_is_outbid() -> None:
    group = Group(A, B, C)
    group["c"].promise(1, 5 * ROUND | 1)
    group["c"].sent.clear()
    group["a"].step(events.Unsettled())
    group["a"].proceed()
    group.settle()
    assert group["a"].views[0].ballot > 5 * ROUND
    assert group["a"].views == group["c"].views


@pytest.mark.parametrize("step", [ROUNDS, 8_000, 999, 64])
@pytest.mark.parametrize(
    ("liar", "kind"), [("a", flush), ("b", flush), ("b", Promised), ("c", Promised)]
)
def test_a_member_that_lies_about_ballots_leaves_the_others_enough(
    liar: str, kind: Callable[[int], ControlMessage], step: int
) -> None:
    """A ballot of the last round would be the last of the view, and the group could not go on."""
    group = Group(A, B, C, D)
    place = "abc".index(liar)
    others = [group[name] for name in "abcd" if name != liar]
    leader = others[0]
    with pytest.raises(ProtocolError, match="ballot"):  # noqa: PT012 one of these is too much
        for rounds in range(step, ROUNDS + 1, step):
            ballot = rounds * ROUND | place
            leader.receive(place, kind(ballot))
    group.crash(liar)
    group.suspect("".join(port.me.address[-1] for port in others), liar)
    group.settle()
    assert [member.address[-1] for member in others[0].views[0].members] == sorted(
        {*"abcd"} - {liar}
    )
    assert all(port.views == others[0].views for port in others)


def test_a_proposal_under_another_ballot_than_promised_is_not_accepted() -> None:
    group = Group(A, B, C)
    here = group["c"]
    here.promise(1, 2 * ROUND | 1)
    value = Value(View(1, 2, ROUND, (A, C), follows=FIRST), b"\x01")
    here.receive(0, Propose(ROUND, value))
    assert here.accepted is None
    assert (0, Promised(2 * ROUND | 1)) in group["c"].sent


def test_leaders_fail_one_after_the_other() -> None:
    """Each dies when it has proposed; the last one brings it to an end."""
    members = [Member(f"sim:{name}", number, number) for number, name in enumerate("abcdefg")]
    group = Group(*members)
    gone = ""
    for name in "abc":
        gone += name
        group.crash(name)
        rest = "".join(each for each in "abcdefg" if each not in gone)
        group.suspect(rest, *gone)
        group.pass_on(rest[0])
        for each in rest[1:]:
            group.pass_on(each)
    group.settle()
    assert [len(port.views) for port in group.live()] == [1] * 4
    assert len({port.views[0] for port in group.live()}) == 1


def test_a_view_of_an_earlier_ballot_is_sent_to_members_that_did_not_report_in_this_one() -> None:
    """They may be all of it that live: any other that decided it is out of the group."""
    group = Group(A, B, C)
    group.suspect("a", "b")
    group.pass_on("a", "c")
    group.pass_on("c", "a")  # a has accepted a view of itself and c
    group["a"].sent.clear()
    group["a"].suspect({C.incarnation})
    group["a"].receive(1, Promised(3 * ROUND | 1))
    group.pass_on("a", "b")
    group.pass_on("b", "a")
    group.pass_on("a", "b")
    group.pass_on("b", "a")
    (view,) = group["a"].views
    assert view.members == (A, C)
    assert (2, Install) in [(position, type(message)) for position, message in group["a"].sent]


def test_a_member_that_was_overdue_and_leads_again_is_not_led_against() -> None:
    group = Group(A, B, C)
    group.suspect("b", "a")
    here = group["b"]
    here.suspect(())
    here.overdue()  # neither a nor c has answered
    assert here.leader == 1
    assert here.ballot is not None
    here.receive(0, flush(here.ballot.number + ROUND & -ROUND))
    assert here.leader == 0
    assert here.ballot is None


# Too few.


def test_too_few_are_blocked_and_say_which_members_they_wait_for() -> None:
    group = Group(A, B, C)
    group.crash("a", "b")
    group.suspect("c", "a", "b")
    group.settle()
    assert not group["c"].views
    assert group["c"].blocks == [((A, B), "1 of 3 members are no majority")]


def test_all_members_that_promised_are_notified_that_the_group_is_blocked() -> None:
    group = Group(A, B, C, D, degree=1)
    group.crash("c", "d")
    group.suspect("ab", "c", "d")
    group.settle()
    rule = "with resilience 1, 3 of 4 members must be there"
    assert [port.blocks for port in group.live()] == [[((C, D), rule)]] * 2


def test_a_member_whose_link_broke_is_notified_once_more_that_the_group_is_blocked() -> None:
    group = Group(A, B, C, D, degree=1)
    group.crash("c", "d")
    group.suspect("ab", "c", "d")
    group.settle()
    (said,) = group["b"].blocks
    group["a"].again(B.incarnation)
    group.settle()
    assert group["b"].blocks == [said, said]


def test_a_blocked_group_goes_on_when_a_member_comes_back() -> None:
    group = Group(A, B, C)
    group.suspect("a", "b", "c")
    group["a"].sent.clear()
    assert group["a"].blocks
    group.suspect("a")
    group["a"].again(B.incarnation)
    group["a"].again(C.incarnation)
    group.settle()
    assert [port.views[-1].members for port in group.live()] == [(A, B, C)] * 3


# Messages that make no sense.


@pytest.mark.parametrize(
    "message",
    [
        [],
        ["NONSENSE"],
        ["FLUSH", ROUND | 1, b"", []],
        ["FLUSH", 1 << 60, b"", []],
        ["FLUSH", 0, b"\x01", []],
        ["PROMISED", 7],
        ["FLUSH_OK", ROUND, b"\x01"],
        ["FLUSH_OK", ROUND, b"\x01", 7, [], 2, [], 0, False],
        ["FLUSH_OK", ROUND, b"\x01", None, [], 4, [], 0, False],
        ["FLUSH_OK", ROUND, b"\x01", None, [], 2, [], 0, True],
        ["CHOSEN", ROUND | 1],
        ["PROMISED", 1 << 60],
        ["PROPOSE", ROUND, [], b""],
        ["PROPOSE", ROUND, View(1, 5, ROUND, (A, B), follows=FIRST).pack(), b""],
        ["PROPOSE", ROUND | 1, View(1, 2, ROUND | 1, (A, B), follows=FIRST).pack(), b""],
        ["ACCEPT", "much"],
        ["BLOCKED", [], 7],
    ],
    ids=repr,
)
def test_what_makes_no_sense_is_refused(message: list[Any]) -> None:
    group = Group(A, B)
    with pytest.raises(ProtocolError):
        group["b"].receive(0, unpack(message))
    assert not group["b"].views


def test_answers_to_a_ballot_that_is_over_change_nothing() -> None:
    group = Group(A, B, C)
    report = FlushOk(ROUND, b"\x01", None, (), State.WHOLE, (), 0)
    group["a"].receive(1, report)
    group["a"].receive(1, Accept(ROUND))
    assert not group["a"].views
    assert not group["a"].sent


@pytest.mark.parametrize("proposed", [False, True])
def test_an_acceptance_of_what_was_not_proposed_is_refused(proposed: bool) -> None:
    """It counts for nothing, and the others go on without its sender."""
    group = Group(A, B, C)
    here = group["a"]
    group.suspect("a", "c")
    if proposed:
        group.pass_on("a", "b")
        group.pass_on("b")
    ballot = here.ballot
    assert ballot is not None
    assert (ballot.value is not None) == proposed
    with pytest.raises(ProtocolError, match="position 2 accepts"):
        here.receive(2, Accept(ballot.number))
    assert not ballot.accepts - {0}
    group.crash("c")
    group.settle()
    assert [view.members for view in here.views] == [(A, B)]


def vouching(group: Group, name: str, dead: Member, *, vouched: bool) -> None:
    """A member sees another one end."""
    group[name].died(dead.incarnation, vouched=vouched)
    group.suspect(name, dead.address[-1])


def test_a_death_that_is_vouched_for_excuses() -> None:
    group = Group(A, B)
    group.crash("a")
    vouching(group, "b", A, vouched=True)
    assert group["b"].views == [View(1, 2, ROUND | 1, (B,), follows=FIRST)]


def test_a_death_that_no_member_vouches_for_does_not() -> None:
    """The oldest of two may have gone on alone, let others in, and died (H13)."""
    group = Group(A, B)
    group.crash("a")
    vouching(group, "b", A, vouched=False)
    assert group["b"].views == []
    assert group["b"].blocks


def test_one_survivor_vouches_for_all() -> None:
    """n=5, three die: c saw only one of them in time, d saw all."""
    members = [Member(f"sim:{name}", number, number) for number, name in enumerate("abcde")]
    group = Group(*members)
    group.crash("a", "b", "e")
    for name in "abe":
        dead = members["abcde".index(name)]
        group["c"].died(dead.incarnation, vouched=name == "a")
        group["d"].died(dead.incarnation, vouched=True)
    group.suspect("cd", "a", "b", "e")
    group.settle()
    view = View(1, 2, ROUND | 2, (members[2], members[3]), follows=FIRST)
    assert [port.views for port in group.live()] == [[view]] * 2


def test_two_survivors_that_each_saw_a_part_do_not_add_up() -> None:
    members = [Member(f"sim:{name}", number, number) for number, name in enumerate("abcde")]
    group = Group(*members)
    group.crash("a", "b", "e")
    for name in "abe":
        dead = members["abcde".index(name)]
        group["c"].died(dead.incarnation, vouched=name == "a")
        group["d"].died(dead.incarnation, vouched=name != "a")
    group.suspect("cd", "a", "b", "e")
    group.settle()
    assert [port.views for port in group.live()] == [[]] * 2


def test_a_death_that_is_seen_after_the_report_is_reported_too() -> None:
    """b leads; c has promised before it sees a end."""
    members = [Member(f"sim:{name}", number, number) for number, name in enumerate("abcd")]
    group = Group(*members)
    group.crash("a", "d")
    group["b"].died(3, vouched=True)
    group["b"].died(0, vouched=False)
    group["c"].died(3, vouched=True)
    group.suspect("bc", "a", "d")
    group.settle()
    assert [port.views for port in group.live()] == [[]] * 2
    group["c"].died(0, vouched=True)
    group.settle()
    view = View(1, 2, ROUND | 1, (members[1], members[2]), follows=FIRST)
    assert [port.views for port in group.live()] == [[view]] * 2


def test_a_coordinator_decides_without_a_living_member_only_when_its_lease_is_over() -> None:
    """The oldest of two, whose link to the other broke: that one lives, and may count on its lease."""
    group = Group(A, B)
    port = group["a"]
    port.leased = {B.incarnation: 5_000}
    group.suspect("a", "b")
    assert port.views == []
    assert not port.granting, "it grants no more leases while it proposes"
    assert port.blocks == []
    port.step(events.LeasesEnded(()))
    port.proceed()
    assert port.views == [View(1, 2, ROUND, (A,), follows=FIRST)]


def test_while_a_lease_is_waited_out_those_that_have_accepted_have_leases_again() -> None:
    """Whatever a decides now, b has accepted; c is left out, and so are its leases."""
    group = Group(A, B, C)
    port = group["a"]
    port.leased = {C.incarnation: 5_000}
    group.crash("c")
    group.suspect("ab", "c")
    group.pass_on("a", "b")
    group.pass_on("b", "a")
    assert not port.granting, "it has proposed, and b has not accepted yet"
    group.settle()
    assert port.views == []
    assert port.granting
    assert port.unleased == (C.incarnation,)
    port.receive(1, Promised(9 * ROUND | 1))
    assert port.granting
    assert port.unleased == (), "the ballot is given up"


def test_a_coordinator_waits_for_no_lease_of_members_that_accept_or_are_dead() -> None:
    group = Group(A, B, C)
    group["a"].leased = {B.incarnation: 5_000, C.incarnation: 5_000}
    group.crash("c")
    for name in "ab":
        group[name].died(C.incarnation, vouched=True)
    group.suspect("ab", "c")
    group.settle()
    view = View(1, 2, ROUND, (A, B), follows=FIRST)
    assert [port.views for port in group.live()] == [[view]] * 2


def test_a_ballot_that_is_given_up_grants_leases_again() -> None:
    group = Group(A, B, C)
    port = group["b"]
    group.suspect("bc", "a")
    group.pass_on("b", "c")
    group.pass_on("c", "b")
    assert not port.granting
    port.receive(2, Promised(9 * ROUND | 2))
    assert port.granting
