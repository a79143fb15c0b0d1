"""Links that break in the middle of a change of view, and stand again: all is repeated that was lost.

The group comes right whichever frames were under way (I28), and so do joiners whose leader has ended.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations, permutations

import pytest

from tests.protocol.hands import Hands, describe

MS = 1_000_000


def members(hands: Hands, name: str) -> str:
    """The members of the view that `name` has installed."""
    view = hands[name].installed
    return "" if view is None else " ".join(each.address[4:] for each in view.members)


def play(hands: Hands, frames: int) -> int:
    """Let so many frames arrive, one after the other, in turn; returns how many did."""
    arrived = 0
    while arrived < frames:
        before = arrived
        for source, target in permutations(hands.endpoints, 2):
            if arrived < frames:
                arrived += hands.deliver(source, target)
        if arrived == before:
            break
    return arrived


def pass_time(hands: Hands, span: int) -> None:
    """Time passes; linked members are heard, and nothing arrives."""
    end = hands.now + span
    while hands.now < end:
        hands.now += 20 * MS
        for name, endpoint in hands.endpoints.items():
            for member in endpoint.stack.beats:
                if linked(hands, name, member.address[4:]):
                    endpoint.stack.heard(member.incarnation, hands.now)
            hands.call(name, endpoint.stack.expire)


def linked(hands: Hands, one: str, other: str) -> bool:
    return any(far is not None and far[0].name == other for far in hands.endpoints[one].links)


def come_right(hands: Hands) -> None:
    """All that is sent arrives, and time passes, as often as it takes."""
    for _ in range(10):
        hands.stabilize()
        pass_time(hands, 100 * MS)
    hands.stabilize()


def changing(frames: int) -> Hands:
    """d leaves and e joins while others cast; so many frames of that have arrived."""
    hands = Hands()
    hands.form("a b c d")
    hands.cast("b", b"before", 1)
    hands.leave("d")
    hands.add("e")
    hands.join("e", "c")
    hands.cast("c", b"meanwhile", 1)
    hands.lines()
    play(hands, frames)
    return hands


def check(hands: Hands) -> None:
    """A member that is not out is in one view with all others that are not, and has what they have."""
    live = [name for name in "abce" if hands[name].exited is None]
    assert "a" in live
    assert "e" in live
    for name in live:
        assert members(hands, name) == " ".join(live), name
        assert hands[name].history == hands["a"].history
    for name, body in (("b", b"before"), ("c", b"meanwhile")):
        assert hands["a"].bodies.count(body) == 1 or name not in live
    hands.cast("e", b"after", 1)
    hands.stabilize()
    assert {hands[name].bodies[-1] for name in live} == {b"after"}
    for name in set("abc").difference(live):
        assert "expelled" in str(hands[name].exited)


@pytest.mark.parametrize("frames", range(0, 80, 4))
def test_all_links_break_at_any_point_of_a_change_of_view(frames: int) -> None:
    hands = changing(frames)
    for one, other in combinations("abcd", 2):
        hands.break_links(one, other)
    come_right(hands)
    check(hands)


@pytest.mark.parametrize("frames", range(0, 80, 4))
@pytest.mark.parametrize("first", ["a", "b"])
def test_one_end_of_each_link_breaks_before_the_other(frames: int, first: str) -> None:
    """It makes the link again, and says so: the other end may not have seen that it was broken."""
    hands = changing(frames)
    others = [name for name in "abc" if name != first]
    halves = []
    for other in others:
        end = hands.endpoints[first]
        for link, far in enumerate(end.links):
            if far is not None and far[0].name == other:
                end.links[link] = None
                end.queues[link].clear()
                far[0].queues[far[1]].clear()
                halves.append((far[0], far[1]))
                hands.call(first, partial(end.stack.link_down, link, "it broke"))
    pass_time(hands, 20 * MS)
    for peer, link in halves:
        hands._down(peer, link, "it broke long before")
    come_right(hands)
    check(hands)


@pytest.mark.parametrize("frames", range(0, 60, 2))
def test_links_of_the_leader_alone_break(frames: int) -> None:
    """The two youngest wait for the next leader, which sees no reason to lead; and the leader needs
    one of them: any write may be held by itself and one more (R = 1)."""
    hands = Hands()
    hands.form("a b c d")
    for name in "abcd":
        hands.endpoints[name].stack.top.degree(1)
    hands.add("e")
    hands.join("e", "b")
    play(hands, frames)
    for other in "cd":
        hands.break_links("a", other)
    come_right(hands)
    live = [name for name in "abcd" if hands[name].exited is None]
    assert len(live) >= 3
    for name in (*live, "e"):
        assert members(hands, name) == " ".join((*live, "e")), name
        assert hands[name].history == hands["a"].history


def test_joiners_are_told_though_the_leader_has_ended() -> None:
    """It leaves with the view that lets d in, and the only word of that to d is lost."""
    hands = Hands()
    hands.form("a b c")
    hands.add("d")
    hands.join("d", "a")
    hands.deliver("a", "d")
    hands.leave("a")
    hands.deliver("d", "a", 2)
    while members(hands, "b") != "b c d":
        moved = [hands.deliver(*pair) for pair in permutations("abc", 2)]
        assert sum(moved), "the change of view needs nothing of d"
    hands.cut_off("a")
    assert members(hands, "d") == ""
    hands.stabilize()
    assert members(hands, "d") == "b c d"
    hands.cast("d", b"x")
    hands.stabilize()
    assert hands["b"].bodies == hands["d"].bodies == [b"x"]


@pytest.mark.parametrize("frames", range(0, 40, 2))
def test_a_joiner_that_lost_its_link_to_the_donor_gets_the_state(frames: int) -> None:
    """The donor believes that its link stands, and that it has given all; it has nothing to send."""
    hands = Hands()
    hands.form("a b c")
    hands.cast("a", b"before")
    hands.stabilize()
    hands.add("d")
    hands.join("d", "b")
    play(hands, frames)
    hands.lose_end("d", "a")
    for _ in range(15):
        hands.stabilize()
        pass_time(hands, 100 * MS)
    assert members(hands, "d") == "a b c d"
    assert hands["d"].history == hands["a"].history


def test_what_waits_for_an_address_is_for_the_endpoint_that_is_there() -> None:
    """d joins from the address of a member that died; the word that it is in waits for a link."""
    hands = Hands()
    hands.form("a b c")
    hands.cut_off("c")
    dead = hands.endpoints.pop("c").stack.me.incarnation
    for name in "ab":
        hands.call(name, partial(hands.endpoints[name].stack.died, dead))
    hands.stabilize()
    assert members(hands, "b") == "a b"
    hands.add("elsewhere")
    hands.add("c")  # another incarnation
    hands.join("c", "b")
    hands.stabilize()
    assert members(hands, "c") == "a b c"


def test_a_leader_is_not_taken_for_hung_if_the_question_was_lost_with_a_link() -> None:
    """R = 1, and two of four are gone: b waits for a, which waits for them."""
    hands = Hands()
    hands.form("a b c d")
    for name in "abcd":
        hands.endpoints[name].stack.top.degree(1)
    for name in "cd":
        hands.cut_off(name)
        hands.endpoints.pop(name)
    hands.stabilize()
    while not any("WAITS" in describe(frame) for frame in hands.frames("b")):
        hands.stabilize()
        pass_time(hands, 20 * MS)
    hands.break_links("a", "b")
    for _ in range(400):
        hands.stabilize()
        pass_time(hands, 100 * MS)
    assert not [line for line in hands.lines() if "does not answer" in line]
