"""What is lost on a link leaves a gap, and the next frame shows it: a new view closes it (I2, I28).

Links are FIFO, so that something is missing only if one broke and stands again, perhaps without
this end having seen that.
"""

from __future__ import annotations

import pytest

from tests.lib.manual_network import ManualNetwork


def group(names: str = "a b c d") -> ManualNetwork:
    network = ManualNetwork()
    network.form(names)
    network.lines()
    return network


def lose(network: ManualNetwork, source: str, target: str) -> bytes:
    """The next frame on this way is lost."""
    end = network.endpoints[source]
    queue = next(
        queue for queue in map(end.queues.__getitem__, ways(network, source, target)) if queue
    )
    return queue.popleft()


def ways(network: ManualNetwork, source: str, target: str) -> list[int]:
    links = network.endpoints[source].links
    return [i for i, far in enumerate(links) if far is not None and far[0].name == target]


def check(network: ManualNetwork, bodies: list[bytes]) -> None:
    """All have delivered these, in one order."""
    network.stabilize()
    for name in network.endpoints:
        assert network[name].bodies == bodies
        assert not network[name].errors
        assert network[name].exited is None
    assert len({tuple(network[name].history[-1:]) for name in network.endpoints}) == 1


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("lost", [1, 2])
def test_a_packet_that_is_lost_is_missed_at_the_next(degree: int, lost: int) -> None:
    network = group()
    bodies = [b"%d" % number for number in range(4)]
    for body in bodies:
        network.cast("a", body, degree)
    for _ in range(lost):
        lose(network, "a", "c")
    network.deliver("a", "c", 1)
    assert network["c"].bodies == [], "what comes behind the gap is not delivered"
    check(network, bodies)


def test_a_packet_that_is_lost_is_missed_when_it_is_accepted() -> None:
    """c holds nothing of it, b and d do: the word that it is accepted is what tells c."""
    network = group()
    network.cast("a", b"x", degree=2)
    lose(network, "a", "c")
    for name in "bd":
        network.deliver("a", name)
        network.deliver(name, "a")
    assert network["a"].bodies == [b"x"]
    network.deliver("a", "c")
    assert network["c"].bodies == []
    check(network, [b"x"])


def test_a_request_that_is_lost_is_missed_at_the_next() -> None:
    """The sequencer numbers a sender's packets in its order, and asks for a view that closes the gap."""
    network = group("a b")
    network.cast("b", b"1")
    network.cast("b", b"2")
    lose(network, "b", "a")
    network.stabilize()
    assert network["a"].bodies == network["b"].bodies == [b"1", b"2"]
    assert network["a"].errors == []


def test_what_is_numbered_twice_over_is_delivered_once() -> None:
    """A frame that comes once more changes nothing."""
    network = group("a b c")
    network.cast("a", b"x", degree=1)
    (frame, *_) = network.frames("a")
    network.deliver("a", "b")
    for _ in range(3):
        network.inject("b", network.link("b", "a"), frame)
    network.cast("a", b"y")
    check(network, [b"x", b"y"])
