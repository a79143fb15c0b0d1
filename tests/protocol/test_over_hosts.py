"""Deaths over several hosts: news of them overtakes what the dead have sent, and is never certain (H13).

S and A are a group. S's end of their link breaks, and A's does not; S goes on alone, being the oldest,
lets C in, and is killed. What S has sent to A since then is still in a connect.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.lib.manual_network import Endpoint, ManualNetwork

MS = 1_000_000


class Network(ManualNetwork):
    """One in which a connection can be in a connect that takes long."""

    def __init__(self) -> None:
        super().__init__()
        self.slow: set[tuple[str, str]] = set()

    def _connect(self, end: Endpoint, address: str) -> None:
        if (end.name, address) not in self.slow:
            super()._connect(end, address)

    def gone(self, name: str, dead: str) -> None:
        """What a driver does when a launcher says at `name` that `dead` is gone: its links are down."""
        end = self.endpoints[name]
        for link, far in enumerate(end.links):
            if far is not None and far[0].name == dead:
                end.links[link] = None
                end.queues[link].clear()
                self.call(name, partial(end.stack.link_down, link, "it is gone"))

    def died(self, name: str, dead: str, lease: int = 0, age: int = 0) -> None:
        """What a driver does when it is certain at `name` that `dead` has ended."""
        self.gone(name, dead)
        incarnation = self.endpoints[dead].stack.me.incarnation
        end = self.endpoints[name]
        self.call(name, lambda now: end.stack.died(incarnation, now, lease, age))


@pytest.fixture
def network() -> Network:
    """S has gone on alone, has let C in, and is dead; neither A nor C knows."""
    network = Network()
    network.form("S A")
    network.cast("S", b"one")
    network.stabilize()
    network.now += 400 * MS  # what each lets the other have as the view begins is over
    network.slow.add(("S", "sim:A"))
    end = network.endpoints["S"]
    link = network.link("S", "A")
    end.links[link] = None
    end.queues[link].clear()
    network.call("S", partial(end.stack.link_down, link, "reset"))
    network.stabilize()
    network.add("C")
    network.join("C", "S")
    network.stabilize()
    network.cast("C", b"by C")
    network.stabilize()
    network.now += 10 * MS
    assert network.monitor is not None
    network.monitor.die(end.stack.me.incarnation)
    network.slow |= {("A", "sim:S"), ("C", "sim:S")}
    return network


def go_on(network: Network) -> None:
    """Time passes, and what can arrive does."""
    for _ in range(5):
        network.now += MS
        network.stabilize()
        for name in ("A", "C"):
            network.call(name, network.endpoints[name].stack.expire)


def key_of(network: Network, name: str) -> int:
    """What the leases of its view say."""
    view = network[name].installed
    assert view is not None
    return view.key


def test_word_from_another_host_makes_no_second_primary(network: Network) -> None:
    network.gone("A", "S")
    network.gone("C", "S")
    go_on(network)
    assert network.members("A") == "S A"
    assert network.members("C") == "S C"
    assert network["A"].problems, "a suspicion, at once"


def test_a_member_has_a_lease_as_soon_as_it_is_in_a_view(network: Network) -> None:
    """S has let C in 10 ms ago, and no beat has come from it since."""
    network.died("A", "S")
    network.died("C", "S")
    go_on(network)
    assert network.members("A") == "S A"
    assert network.members("C") == "C"


def test_a_certain_death_without_a_lease_makes_none_either(network: Network) -> None:
    network.now += 400 * MS
    network.died("A", "S")
    network.died("C", "S")
    go_on(network)
    assert network.members("A") == "S A"
    assert network.members("C") == "S C"


def test_the_member_with_the_lease_of_the_dead_goes_on(network: Network) -> None:
    """C, on the host of S; A has had none since S went on without it."""
    lease = key_of(network, "S")
    network.died("A", "S", lease=key_of(network, "A"), age=10**12)
    network.died("C", "S", lease=lease, age=MS)
    go_on(network)
    assert network.members("C") == "C"
    assert network.members("A") == "S A"


def test_once_they_meet_the_one_that_was_left_out_is_out(network: Network) -> None:
    network.gone("A", "S")
    network.died("C", "S", lease=key_of(network, "S"), age=MS)
    go_on(network)
    a, c = network.endpoints["A"].stack, network.endpoints["C"].stack
    network.call("A", partial(a.join, c.me.address))
    go_on(network)
    assert network["A"].exited is not None
    assert network.members("C") == "C"
