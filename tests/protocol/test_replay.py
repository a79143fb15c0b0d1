"""Replay inertness (I31): frames that come once more, now or much later, change nothing."""

from __future__ import annotations

from functools import partial

import pytest

from orcalike.transport.wire.message import Message
from tests.lib.manual_network import STACK, ManualNetwork


class Tape(ManualNetwork):
    """Keeps each frame that arrived, and which link it came by."""

    def __init__(self, stack: str = STACK, copies: int = 1) -> None:
        super().__init__(stack)
        self.copies = copies
        self.tape: list[tuple[str, int, bytes]] = []

    def inject(self, target: str, link: int, frame: bytes) -> None:
        self.tape.append((target, link, frame))
        for _ in range(self.copies):
            super().inject(target, link, frame)

    def replay(self, *kinds: int) -> None:
        """All that ever arrived at the members arrives once more."""
        for target, link, frame in self.tape:
            if self[target].exited is None and frame[6] in kinds:
                super().inject(target, link, frame)
        self.stabilize()

    def state(self) -> dict[str, object]:
        """All that the applications of the members have seen."""
        return {
            name: (network.history, network.installed)
            for name in self.endpoints
            if (network := self[name]).exited is None
        }


HELLO, CAST, SEND = 1, 2, 3


def history(network: Tape) -> None:
    """Joins, casts of each degree, a leave, and a change of sequencer."""
    network.form("a b c")
    for number, name in enumerate("abcbca"):
        network.cast(name, b"%d" % number, number % 3)
    network.stabilize()
    network.add("d")
    network.join("d", "b")
    network.cast("c", b"while d joins")
    network.stabilize()
    network.leave("a")
    network.cast("d", b"while a leaves", 1)
    network.stabilize()
    for name in "bcd":
        network.cast(name, b"after", 1)
    network.stabilize()


def goes_on(network: Tape) -> None:
    """The group does, and all see the same."""
    network.cast("c", b"at the end", 1)
    network.stabilize()
    for name in "bcd":
        assert network[name].bodies == network["b"].bodies
        assert network[name].bodies[-1] == b"at the end"
        assert network[name].exited is None


@pytest.mark.parametrize("kind", [HELLO, CAST, SEND])
def test_old_frames_change_nothing(kind: int) -> None:
    network = Tape()
    history(network)
    before = repr(network.state())
    for _ in range(2):
        network.replay(kind)
    assert repr(network.state()) == before
    goes_on(network)


def test_the_layer_of_views_keeps_those_of_older_views_away_from_any_layer() -> None:
    """Also from one that has no numbers of its own (I16)."""
    network = Tape("MBRSHIP:COM:sim")
    network.monitor = None
    network.form("a b c")
    network.cast("b", b"cast")
    network.call("b", partial(network.endpoints["b"].stack.send, Message(b"send"), (2,)))
    network.stabilize()
    network.leave("a")
    network.stabilize()
    for name in "bc":
        view = network[name].installed
        assert view is not None
        assert len(view.members) == 2
    before = [(network[name].bodies, list(network[name].sends)) for name in "bc"]
    assert before[1] == ([b"cast"], [(1, b"send")])
    network.replay(CAST, SEND)
    assert [(network[name].bodies, list(network[name].sends)) for name in "bc"] == before


def test_frames_that_come_twice_change_nothing() -> None:
    once, twice = Tape(), Tape(copies=2)
    for network in (once, twice):
        history(network)
    assert repr(twice.state()) == repr(once.state())
    goes_on(twice)


def test_what_comes_twice_while_it_waits_for_its_number_is_numbered_once() -> None:
    network = Tape("XFER:TOTAL(packets=4):MBRSHIP:COM:sim", copies=2)
    network.form("a b c")
    casts = [b"%d" % number for number in range(40)]
    for number, body in enumerate(casts):
        network.cast("bc"[number % 2], body)
    network.stabilize()
    for name in "abc":
        assert sorted(network[name].bodies) == sorted(casts)
        assert network[name].bodies == network["a"].bodies
        assert not network[name].errors


def test_no_member_complains_of_what_comes_twice() -> None:
    network = Tape(copies=2)
    network.form("a b c")
    for number, name in enumerate("abcbca"):
        network.cast(name, b"%d" % number, number % 3)
    network.stabilize()
    assert not [error for name in "abc" for error in network[name].errors]
