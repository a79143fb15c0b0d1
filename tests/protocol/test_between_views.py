"""The rest of the last view is delivered when the layers below have the next one already.

A place in the view means another member then, or none: what the layers above say of a place is
said of the member that had it when the packet came.
"""

from __future__ import annotations

from functools import partial

import pytest

from orcalike.transport.wire.message import Message
from tests.lib.manual_network import ManualNetwork, Narrator


class Accuser(Narrator):
    """It refuses what a member says that the test names: that one lies."""

    def up_cast(self, message: Message) -> None:
        super().up_cast(message)
        if message.body == b"a lie":
            self.below.flush((message.source,))
            self.below.send(Message(b"did you say that?"), (message.source,))


@pytest.mark.parametrize("liar", ["c", "d", "e"])
def test_a_member_that_lied_in_the_last_view_is_the_one_that_goes(liar: str) -> None:
    """b learns from the others, as the sequencer is dead, what the liar said in the last view."""
    network = ManualNetwork()
    network.form("a b c d e")
    network["b"].__class__ = Accuser
    network.cast(liar, b"a lie", degree=2)
    others = [name for name in "cde" if name != liar]
    for name in [liar, *others]:
        network.deliver(liar, "a")
        network.deliver("a", name)
        network.deliver(name, "a")
    for name in [liar, *others]:
        network.deliver("a", name)
    assert network[others[0]].bodies == [b"a lie"]
    assert network["b"].bodies == []

    network.cut_off("a")
    dead = network.endpoints.pop("a").stack.me.incarnation
    for name in "bcde":
        network.call(name, partial(network.endpoints[name].stack.died, dead))
    network.stabilize()

    left = ["b", *others]
    for name in left:
        assert network.members(name) == " ".join(left)
        assert network[name].bodies == [b"a lie"]
        assert network[name].errors == []
        assert network[name].sends == [], (
            "a message under way at a change of view is lost, not misled"
        )
    assert network[liar].exited is not None
