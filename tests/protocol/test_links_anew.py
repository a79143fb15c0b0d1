"""Links that break in the middle of a change of view, and stand again: all is repeated that was lost.

The group recovers whichever frames were under way (I28), and so do joiners whose leader has ended.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations, permutations

import pytest

from tests.lib.manual_network import ManualNetwork, describe

MS = 1_000_000


def members(network: ManualNetwork, name: str) -> str:
    """The members of the view that `name` has installed."""
    view = network[name].installed
    return "" if view is None else " ".join(each.address[4:] for each in view.members)


def play(network: ManualNetwork, frames: int) -> int:
    """Let so many frames arrive, one after the other, in turn; returns how many did."""
    arrived = 0
    while arrived < frames:
        before = arrived
        for source, target in permutations(network.endpoints, 2):
            if arrived < frames:
                arrived += network.deliver(source, target)
        if arrived == before:
            break
    return arrived


def pass_time(network: ManualNetwork, span: int) -> None:
    """Time passes; linked members are heard, and nothing arrives."""
    end = network.now + span
    while network.now < end:
        network.now += 20 * MS
        for name, endpoint in network.endpoints.items():
            for member in endpoint.stack.beats:
                if linked(network, name, member.address[4:]):
                    endpoint.stack.heard(member.incarnation, network.now)
            network.call(name, endpoint.stack.expire)


def linked(network: ManualNetwork, one: str, other: str) -> bool:
    return any(far is not None and far[0].name == other for far in network.endpoints[one].links)


def recover(network: ManualNetwork) -> None:
    """All that is sent arrives, and time passes, as often as it takes."""
    for _ in range(10):
        network.stabilize()
        pass_time(network, 100 * MS)
    network.stabilize()


def changing(frames: int) -> ManualNetwork:
    """d leaves and e joins while others cast; so many frames of that have arrived."""
    network = ManualNetwork()
    network.form("a b c d")
    network.cast("b", b"before", 1)
    network.leave("d")
    network.add("e")
    network.join("e", "c")
    network.cast("c", b"meanwhile", 1)
    network.lines()
    play(network, frames)
    return network


def check(network: ManualNetwork) -> None:
    """A member that is not out is in one view with all others that are not, and has what they have."""
    live = [name for name in "abce" if network[name].exited is None]
    assert "a" in live
    assert "e" in live
    for name in live:
        assert members(network, name) == " ".join(live), name
        assert network[name].history == network["a"].history
    for name, body in (("b", b"before"), ("c", b"meanwhile")):
        assert network["a"].bodies.count(body) == 1 or name not in live
    network.cast("e", b"after", 1)
    network.stabilize()
    assert {network[name].bodies[-1] for name in live} == {b"after"}
    for name in set("abc").difference(live):
        assert "expelled" in str(network[name].exited)


@pytest.mark.parametrize("frames", range(0, 80, 4))
def test_all_links_break_at_any_point_of_a_change_of_view(frames: int) -> None:
    network = changing(frames)
    for one, other in combinations("abcd", 2):
        network.break_links(one, other)
    recover(network)
    check(network)


@pytest.mark.parametrize("frames", range(0, 80, 4))
@pytest.mark.parametrize("first", ["a", "b"])
def test_one_end_of_each_link_breaks_before_the_other(frames: int, first: str) -> None:
    """It makes the link again, and says so: the other end may not have seen that it was broken."""
    network = changing(frames)
    others = [name for name in "abc" if name != first]
    halves = []
    for other in others:
        end = network.endpoints[first]
        for link, far in enumerate(end.links):
            if far is not None and far[0].name == other:
                end.links[link] = None
                end.queues[link].clear()
                far[0].queues[far[1]].clear()
                halves.append((far[0], far[1]))
                network.call(first, partial(end.stack.link_down, link, "it broke"))
    pass_time(network, 20 * MS)
    for peer, link in halves:
        network._down(peer, link, "it broke long before")
    recover(network)
    check(network)


@pytest.mark.parametrize("frames", range(0, 60, 2))
def test_links_of_the_leader_alone_break(frames: int) -> None:
    """The two youngest wait for the next leader, which sees no reason to lead; and the leader needs
    one of them: any write may be held by itself and one more (R = 1)."""
    network = ManualNetwork()
    network.form("a b c d")
    for name in "abcd":
        network.endpoints[name].stack.top.degree(1)
    network.add("e")
    network.join("e", "b")
    play(network, frames)
    for other in "cd":
        network.break_links("a", other)
    recover(network)
    live = [name for name in "abcd" if network[name].exited is None]
    assert len(live) >= 3
    for name in (*live, "e"):
        assert members(network, name) == " ".join((*live, "e")), name
        assert network[name].history == network["a"].history


def test_joiners_are_notified_though_the_leader_has_ended() -> None:
    """It leaves with the view that lets d in, and the only word of that to d is lost."""
    network = ManualNetwork()
    network.form("a b c")
    network.add("d")
    network.join("d", "a")
    network.deliver("a", "d")
    network.leave("a")
    network.deliver("d", "a", 2)
    while members(network, "b") != "b c d":
        moved = [network.deliver(*pair) for pair in permutations("abc", 2)]
        assert sum(moved), "the change of view needs nothing of d"
    network.cut_off("a")
    assert members(network, "d") == ""
    network.stabilize()
    assert members(network, "d") == "b c d"
    network.cast("d", b"x")
    network.stabilize()
    assert network["b"].bodies == network["d"].bodies == [b"x"]


@pytest.mark.parametrize("frames", range(0, 40, 2))
def test_a_joiner_that_lost_its_link_to_the_donor_gets_the_state(frames: int) -> None:
    """The donor believes that its link stands, and that it has given all; it has nothing to send."""
    network = ManualNetwork()
    network.form("a b c")
    network.cast("a", b"before")
    network.stabilize()
    network.add("d")
    network.join("d", "b")
    play(network, frames)
    network.lose_end("d", "a")
    for _ in range(15):
        network.stabilize()
        pass_time(network, 100 * MS)
    assert members(network, "d") == "a b c d"
    assert network["d"].history == network["a"].history


@pytest.mark.parametrize("notices", ["first", "late"])
def test_a_link_that_the_driver_makes_anew_loses_nothing(notices: str) -> None:
    """It has found another road, and what came by the first one was not handed in: JOIN waits for the next greeting.

    The other end may notice late that the first one is gone, when it sends something there.
    """
    network = ManualNetwork()
    network.form("a")
    network.add("b")
    network.join("b", "a")
    network.deliver("b", "a")  # its greeting; a greets, too
    end = network.endpoints["b"]
    link = network.link("b", "a")
    network.call("b", partial(end.stack.link_anew, link))
    network.join("b", "a")
    assert len(end.links) == 1, "no other link is asked for"
    for gone in (link, 77, -1):
        network.call("b", partial(end.stack.link_anew, gone))
    there, number = end.links[link] or (end, -1)
    end.links[link] = None
    if notices == "first":
        network._down(there, number, "it closed the connection")
    network._connect(end, "sim:a")
    network.stabilize()
    assert members(network, "a") == members(network, "b") == "a b"
    assert not [line for line in network.lines() if "problem" in line or "failed" in line]


def links_between(network: ManualNetwork, one: str, other: str) -> int:
    """How many links stand between the two."""
    return sum(far is not None and far[0].name == other for far in network.endpoints[one].links)


def test_a_process_that_does_not_greet_is_asked_by_one_link() -> None:
    """It is stopped, or just starting: what it is asked again waits for its greeting."""
    network = ManualNetwork()
    network.form("a")
    network.add("b")
    network.join("b", "a")
    pass_time(network, 20_000 * MS)
    assert links_between(network, "b", "a") == 1
    network.stabilize()
    assert members(network, "b") == "a b"
    assert links_between(network, "b", "a") == 1


def test_each_of_two_members_makes_one_link_at_the_most() -> None:
    """Both have lost it, and neither gets the greeting of the other one for long."""
    network = ManualNetwork()
    network.form("a b c")
    network.break_links("a", "b")
    pass_time(network, 20_000 * MS)
    assert 1 <= links_between(network, "a", "b") <= 2
    recover(network)
    assert members(network, "a") == members(network, "b") == "a b c"


@pytest.mark.parametrize("frames", [0, 1])
def test_a_link_that_breaks_before_the_other_end_has_greeted_is_made_again(frames: int) -> None:
    """Nothing of it comes to the end that has made it, which sees it by sending something."""
    network = ManualNetwork()
    network.form("a")
    network.add("b")
    network.join("b", "a")
    network.deliver("b", "a", frames)
    network.lose_end("a", "b")
    recover(network)
    assert members(network, "b") == "a b"


def test_a_link_that_breaks_each_time_does_not_keep_the_group_busy() -> None:
    """One of the two has no descriptors for it, say: it is made after pauses that grow, however many views there are."""
    network = ManualNetwork()
    network.form("a b c")
    first = view_number(network, "a")
    for _ in range(1000):
        network.stabilize()
        network.break_links("b", "c")
        pass_time(network, 20 * MS)
    assert view_number(network, "a") - first <= 60
    recover(network)
    assert links_between(network, "b", "c") >= 1
    assert {members(network, name) for name in "abc"} == {"a b c"}


def view_number(network: ManualNetwork, name: str) -> int:
    """The number of the view that `name` has installed."""
    view = network[name].installed
    assert view is not None
    return view.number


def test_messages_to_an_address_are_for_the_endpoint_that_is_there() -> None:
    """d joins from the address of a member that died; the word that it is in waits for a link."""
    network = ManualNetwork()
    network.form("a b c")
    network.cut_off("c")
    dead = network.endpoints.pop("c").stack.me.incarnation
    for name in "ab":
        network.call(name, partial(network.endpoints[name].stack.died, dead))
    network.stabilize()
    assert members(network, "b") == "a b"
    network.add("elsewhere")
    network.add("c")  # another incarnation
    network.join("c", "b")
    network.stabilize()
    assert members(network, "c") == "a b c"


def test_a_leader_is_not_taken_for_hung_if_the_question_was_lost_with_a_link() -> None:
    """R = 1, and two of four are gone: b waits for a, which waits for them."""
    network = ManualNetwork()
    network.form("a b c d")
    for name in "abcd":
        network.endpoints[name].stack.top.degree(1)
    for name in "cd":
        network.cut_off(name)
        network.endpoints.pop(name)
    network.stabilize()
    while not any("WAITS" in describe(frame) for frame in network.frames("b")):
        network.stabilize()
        pass_time(network, 20 * MS)
    network.break_links("a", "b")
    for _ in range(400):
        network.stabilize()
        pass_time(network, 100 * MS)
    assert not [line for line in network.lines() if "has not let this process in" in line]
