"""What a member remembers of the others from one view to the next."""

from __future__ import annotations

from orcalike.transport.membership.knowledge import Knowledge
from orcalike.transport.membership.messages import Value
from orcalike.transport.view import Member, View

ME, *OTHERS = (Member(f"sim:{number}", number, number) for number in range(1, 7))
SLOW, HUNG, SILENT, DEAD, WELL = (member.incarnation for member in OTHERS)


def in_a_view() -> Knowledge:
    """All are in it, and all others but one are out for some reason."""
    known = Knowledge(ME)
    known.enter(Value(View(1, 1, 0, (ME, *OTHERS)), b""))
    assert known.left_out == {}
    known.expelled, known.hung = {SLOW}, {HUNG}
    known.suspects, known.dead, known.vouched = frozenset({SILENT, DEAD}), {DEAD}, {DEAD}
    known.newcomers, known.unsettled = (OTHERS[0],), True
    return known


def test_of_members_that_were_left_out_it_knows_why() -> None:
    known = in_a_view()
    known.enter(Value(View(1, 2, 0, (ME, OTHERS[-1])), b""))
    assert known.left_out == {
        SLOW: "it was too slow to take what was ordered, or sent what cannot be true",
        HUNG: "it did not answer",
        SILENT: "nothing was heard of it",
        DEAD: "nothing was heard of it",
    }
    assert (known.suspects, known.dead) == (frozenset(), set())


def test_a_member_that_leaves_is_left_out_for_no_reason() -> None:
    known = in_a_view()
    present = (ME, *OTHERS[:-1])
    known.enter(Value(View(1, 2, 0, present), b""))
    assert known.left_out == {WELL: ""}


def test_members_that_stay_begin_anew_but_for_what_was_seen_of_their_end() -> None:
    known = in_a_view()
    value = Value(View(1, 2, 0, (ME, *OTHERS)), b"cut")
    known.enter(value)
    assert (known.view, known.last, known.left_out) == (value.view, value, {})
    assert (known.expelled, known.hung, known.vouched) == (set(), set(), set())
    assert (known.newcomers, known.unsettled) == ((), False)
    assert (known.suspects, known.dead) == (frozenset({SILENT, DEAD}), {DEAD})


def test_the_dead_are_others_of_the_view() -> None:
    known = Knowledge(ME)
    known.note_dead([WELL])
    assert known.dead == set()
    known.enter(Value(View(1, 1, 0, (ME, *OTHERS)), b""))
    known.note_dead([ME.incarnation, WELL, 99])
    assert known.dead == {WELL}
    assert known.is_out(WELL)
    assert not known.is_out(SLOW)


def test_the_oldest_that_is_not_out_leads() -> None:
    known = Knowledge(OTHERS[-1])
    assert known.position == -1
    known.enter(Value(View(1, 1, 0, (ME, *OTHERS)), b""))
    assert (known.position, known.leader) == (5, 0)
    known.suspects = frozenset({ME.incarnation})
    assert known.leader == 1
    known.expelled, known.hung, known.dead = {SLOW}, {HUNG}, {SILENT}
    assert known.leader == 4
    known.suspects |= {DEAD, WELL}
    assert known.leader == 5  # itself, whatever others may take it for
