"""The rest of the last view is delivered when the layers below have the next one already.

A place in the view means another member then, or none: what the layers above say of a place is
said of the member that had it when the packet came.
"""

from __future__ import annotations

from functools import partial

import pytest

from orcalike.transport.wire.message import Message
from tests.protocol.hands import Hands, Narrator


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
    hands = Hands()
    hands.form("a b c d e")
    hands["b"].__class__ = Accuser
    hands.cast(liar, b"a lie", degree=2)
    others = [name for name in "cde" if name != liar]
    for name in [liar, *others]:
        hands.deliver(liar, "a")
        hands.deliver("a", name)
        hands.deliver(name, "a")
    for name in [liar, *others]:
        hands.deliver("a", name)
    assert hands[others[0]].bodies == [b"a lie"]
    assert hands["b"].bodies == []

    hands.cut_off("a")
    dead = hands.endpoints.pop("a").stack.me.incarnation
    for name in "bcde":
        hands.call(name, partial(hands.endpoints[name].stack.died, dead))
    hands.stabilize()

    left = ["b", *others]
    for name in left:
        view = hands[name].installed
        assert view is not None
        assert [member.address.removeprefix("sim:") for member in view.members] == left
        assert hands[name].bodies == [b"a lie"]
        assert hands[name].errors == []
        assert hands[name].sends == [], (
            "a message under way at a change of view is lost, not misled"
        )
    assert hands[liar].exited is not None
