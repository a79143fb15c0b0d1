"""Messages of views that are still to come: how much of them is kept, and of which peer none any more."""

from __future__ import annotations

import pytest

from orcalike.transport.membership import early
from orcalike.transport.membership.early import Early, Entry


class Peer:
    """A link."""


def entry(peer: Peer, key: int = 0) -> Entry:
    return Entry(key, True, None, peer)


def test_what_was_taken_makes_room() -> None:
    """View after view, as long as a peer is connected."""
    kept, peers = Early(), {True: Peer(), False: Peer()}
    for number in range(5):
        for is_member, most in ((True, early.MEMBER_BYTES_MAX), (False, early.OTHER_BYTES_MAX)):
            size = most - early.OVERHEAD
            assert kept.keep(entry(peers[is_member], number), size, is_member=is_member) is None
        assert kept.bytes == early.MEMBER_BYTES_MAX + early.OTHER_BYTES_MAX
        assert [(each.key, each.peer) for each in kept.take()] == [
            (number, peers[True]),
            (number, peers[False]),
        ]
        assert kept.bytes == 0
    assert kept.take() == []


@pytest.mark.parametrize(
    ("is_member", "most"), [(True, early.MEMBER_BYTES_MAX), (False, early.OTHER_BYTES_MAX)]
)
def test_one_that_sends_too_much_loses_all_that_it_sent(is_member: bool, most: int) -> None:
    peer, other = Peer(), Peer()
    kept = Early()
    assert kept.keep(entry(other), 1, is_member=is_member) is None
    assert kept.keep(entry(peer), most - early.OVERHEAD, is_member=is_member) is None
    assert kept.keep(entry(peer), 0, is_member=is_member) is peer
    assert [each.peer for each in kept.take()] == [other]


@pytest.mark.parametrize(
    ("is_member", "each", "most"),
    [
        (True, early.MEMBER_BYTES_MAX, early.ALL_BYTES_MAX),
        (False, early.OTHER_BYTES_MAX, early.OTHERS_BYTES_MAX),
    ],
)
def test_all_of_a_kind_have_a_bound_too(is_member: bool, each: int, most: int) -> None:
    """That of which most is kept has to go."""
    kept, greedy = Early(), Peer()
    assert kept.keep(entry(greedy), each - early.OVERHEAD, is_member=is_member) is None
    room = (most - each) // (each // 2)
    for _ in range(room):
        assert kept.keep(entry(Peer()), each // 2 - early.OVERHEAD, is_member=is_member) is None
    assert kept.bytes == most
    assert kept.keep(entry(Peer()), 0, is_member=is_member) is greedy
    assert len(kept.take()) == room + 1


def test_non_members_take_no_room_of_members() -> None:
    kept = Early()
    for _ in range(early.OTHERS_BYTES_MAX // early.OTHER_BYTES_MAX):
        peer = Peer()
        assert (
            kept.keep(entry(peer), early.OTHER_BYTES_MAX - early.OVERHEAD, is_member=False) is None
        )
    assert kept.keep(entry(Peer()), early.MEMBER_BYTES_MAX - early.OVERHEAD, is_member=True) is None
