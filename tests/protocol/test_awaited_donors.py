"""A joiner knows from which members the state is to come that it waits for."""

from __future__ import annotations

from orcalike.transport.stack import Stack
from tests.lib.manual_network import ManualNetwork


def addresses(stack: Stack) -> list[str]:
    """Of the members of which one is to give it its state."""
    return [member.address for member in stack.awaited_donors()]


def test_the_donors_of_a_joiner_are_known_from_its_view_until_it_has_the_state() -> None:
    network = ManualNetwork("XFER:TOTAL:MBRSHIP:COM:sim")
    network.form("a b")
    network.add("c")
    stacks = {name: network.endpoints[name].stack for name in "abc"}
    pairs = [(one, other) for one in "abc" for other in "abc"]
    awaited = [addresses(stacks["c"])]
    network.join("c", "a")
    while any(network.deliver(one, other) for one, other in pairs):
        awaited.append(addresses(stacks["c"]))
    assert awaited[0] == awaited[-1] == []
    assert ["sim:a", "sim:b"] in awaited  # before the first piece has come
    assert ["sim:a"] in awaited  # the oldest gives
    assert [addresses(stacks[name]) for name in "ab"] == [[], []]
