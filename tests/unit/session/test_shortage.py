"""What a group waits for: missing members, or members that are too few for a degree."""

from __future__ import annotations

import logging

import pytest

from orcalike.session.shortage import Shortage
from orcalike.transport.view import Member, View

A, B = (Member(f"unix:/run/{rank}", 10 + rank, rank) for rank in range(2))
BOTH, ONE = View(1, 1, 0, (A, B)), View(1, 2, 1, (A,))
TOO_FEW = "degree 1 takes 2 members with replicas, and the view has 1"
REMEDY = "or for group.reset()"


class Degrees:
    """What the layer above says of the degrees in use."""

    too_few: str | None = None

    def __call__(self) -> str | None:
        return self.too_few


@pytest.fixture
def degrees() -> Degrees:
    return Degrees()


@pytest.fixture
def shortage(degrees: Degrees) -> Shortage:
    return Shortage("jobs", degrees)


def test_a_blocked_group_says_what_it_waits_for(shortage: Shortage) -> None:
    assert shortage.waits_for is None
    shortage.blocked = (B,), "1 of 2 members are no majority"
    assert shortage.waits_for == shortage.blocked
    assert shortage.describe_blocked() == f"it waits for {B} (1 of 2 members are no majority)"


def test_a_group_whose_missing_members_have_ended_names_the_remedy(shortage: Shortage) -> None:
    shortage.blocked = (), "1 of 3 members are no majority"
    assert shortage.describe_blocked() == (
        "each member that is missing has ended (1 of 3 members are no majority); group.reset() "
        "goes on without them"
    )


def test_lost_members_are_named_until_their_rank_is_taken(
    shortage: Shortage, degrees: Degrees
) -> None:
    shortage.note_view(BOTH, ONE)
    degrees.too_few = TOO_FEW
    lost: tuple[Member, ...] = (B,)
    assert shortage.waits_for == (lost, TOO_FEW)
    again = Member("unix:/run/1", 21, 1)
    shortage.note_view(ONE, View(1, 3, 2, (A, again)))
    lost = ()
    assert shortage.waits_for == (lost, TOO_FEW)


def test_a_member_that_left_is_not_lost(shortage: Shortage) -> None:
    assert not shortage.note_view(BOTH, ONE)
    shortage.suspect(B)
    assert shortage.note_view(BOTH, ONE)
    assert not shortage.note_view(BOTH, ONE)  # known by then


def test_too_few_members_are_logged_once_and_so_is_the_end(
    shortage: Shortage, degrees: Degrees, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "orcalike")
    degrees.too_few = TOO_FEW
    shortage.look_for_too_few()
    shortage.warn_of_too_few()
    assert caplog.messages == []  # the group has only begun
    for degrees.too_few in (None, TOO_FEW):
        shortage.look_for_too_few()
    shortage.note_view(BOTH, ONE)
    says = [
        f"the group 'jobs' has too few members: {TOO_FEW}; such writes wait for {B}, {REMEDY}",
        "the group 'jobs' has members enough again for every degree",
    ]
    for times in (1, 2):  # and so it is the next time
        for degrees.too_few in (TOO_FEW, None):
            for _ in range(2):
                shortage.look_for_too_few()
                shortage.warn_of_too_few()
        assert caplog.messages == says * times
