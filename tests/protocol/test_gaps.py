"""What is lost on a link leaves a gap, and the next frame shows it: a new view closes it (I2, I28).

Links are FIFO, so that something is missing only if one broke and stands again, perhaps without
this end having seen that.
"""

from __future__ import annotations

import pytest

from tests.protocol.hands import Hands


def group(names: str = "a b c d") -> Hands:
    hands = Hands()
    hands.form(names)
    hands.lines()
    return hands


def lose(hands: Hands, source: str, target: str) -> bytes:
    """The next frame on this way is lost."""
    end = hands.endpoints[source]
    queue = next(
        queue for queue in map(end.queues.__getitem__, ways(hands, source, target)) if queue
    )
    return queue.popleft()


def ways(hands: Hands, source: str, target: str) -> list[int]:
    links = hands.endpoints[source].links
    return [i for i, far in enumerate(links) if far is not None and far[0].name == target]


def check(hands: Hands, bodies: list[bytes]) -> None:
    """All have delivered these, in one order."""
    hands.stabilize()
    for name in hands.endpoints:
        assert hands[name].bodies == bodies
        assert not hands[name].errors
        assert hands[name].exited is None
    assert len({tuple(hands[name].history[-1:]) for name in hands.endpoints}) == 1


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("lost", [1, 2])
def test_a_packet_that_is_lost_is_missed_at_the_next(degree: int, lost: int) -> None:
    hands = group()
    bodies = [b"%d" % number for number in range(4)]
    for body in bodies:
        hands.cast("a", body, degree)
    for _ in range(lost):
        lose(hands, "a", "c")
    hands.deliver("a", "c", 1)
    assert hands["c"].bodies == [], "what comes behind the gap is not delivered"
    check(hands, bodies)


def test_a_packet_that_is_lost_is_missed_when_it_is_accepted() -> None:
    """c holds nothing of it, b and d do: the word that it is accepted is what tells c."""
    hands = group()
    hands.cast("a", b"x", degree=2)
    lose(hands, "a", "c")
    for name in "bd":
        hands.deliver("a", name)
        hands.deliver(name, "a")
    assert hands["a"].bodies == [b"x"]
    hands.deliver("a", "c")
    assert hands["c"].bodies == []
    check(hands, [b"x"])


def test_a_request_that_is_lost_is_missed_at_the_next() -> None:
    """The sequencer numbers a sender's packets in its order, and asks for a view that closes the gap."""
    hands = group("a b")
    hands.cast("b", b"1")
    hands.cast("b", b"2")
    lose(hands, "b", "a")
    hands.stabilize()
    assert hands["a"].bodies == hands["b"].bodies == [b"1", b"2"]
    assert hands["a"].errors == []


def test_what_is_numbered_twice_over_is_delivered_once() -> None:
    """A frame that comes once more changes nothing."""
    hands = group("a b c")
    hands.cast("a", b"x", degree=1)
    (frame, *_) = hands.frames("a")
    hands.deliver("a", "b")
    for _ in range(3):
        hands.inject("b", hands.link("b", "a"), frame)
    hands.cast("a", b"y")
    check(hands, [b"x", b"y"])
