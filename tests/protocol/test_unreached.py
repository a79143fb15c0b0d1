"""Members that are not reached: the messages that wait for their links have a bound, and no other link pays for them."""

from __future__ import annotations

from orcalike.transport.wire.message import Message
from tests.lib.manual_network import Endpoint, ManualNetwork
from tests.protocol.test_links_anew import linked, members, recover

MIB = 1 << 20


class Unreached(ManualNetwork):
    """No link between b and c is made before `go_on`."""

    def __init__(self, stack: str) -> None:
        super().__init__(stack)
        self.wanted: list[tuple[Endpoint, str]] | None = []

    def _connect(self, end: Endpoint, address: str) -> None:
        if self.wanted is not None and {end.name, address.removeprefix("sim:")} == {"b", "c"}:
            self.wanted.append((end, address))
        else:
            super()._connect(end, address)

    def go_on(self) -> None:
        """The links that were asked for are made."""
        wanted, self.wanted = self.wanted, None
        for end, address in wanted or ():
            self._connect(end, address)


def test_more_than_may_wait_for_a_link_is_lost_like_what_a_link_loses_that_breaks() -> None:
    """b sends to c for each cast of a, whose link stands; a new view closes the gap."""
    network = Unreached("MBRSHIP:COM:sim")
    network.monitor = None  # nothing is in order in such a stack
    network.form("a b c")
    stack = network.endpoints["b"].stack

    def answer(message: Message) -> None:
        stack.top.send(Message(bytes(MIB)), (2,))

    network["b"].up_cast = answer  # type: ignore[method-assign]
    problems = network["b"].problems
    for _ in range(63):
        network.cast("a", b"cast")
        network.deliver("a", "b")
    assert not problems
    for _ in range(63):
        network.cast("a", b"cast")
        network.deliver("a", "b")
    assert [text.rpartition(": ")[2] for text in problems] == [
        "it is not reached, and 67108864 bytes waited for it"
    ]
    assert not network["b"].errors
    assert linked(network, "a", "b")
    network.go_on()
    recover(network)
    assert len(network["c"].sends) <= 64
    assert members(network, "a") == members(network, "b") == members(network, "c") == "a b c"
    before = len(network["c"].sends)
    network.call("b", lambda now: stack.send(Message(b"again"), (2,), now))
    network.stabilize()
    assert network["c"].sends[before:] == [(1, b"again")]
