"""Replay inertness (I31): frames that come once more, now or much later, change nothing."""

from __future__ import annotations

from functools import partial

import pytest

from orcalike.transport.wire.message import Message
from tests.protocol.checkers import Checker
from tests.protocol.hands import STACK, Hands


class Tape(Hands):
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
            name: (hands.history, hands.installed)
            for name in self.endpoints
            if (hands := self[name]).exited is None
        }


HELLO, CAST, SEND = 1, 2, 3


def history(hands: Tape) -> None:
    """Joins, casts of each degree, a leave, and a change of sequencer."""
    hands.form("a b c")
    for number, name in enumerate("abcbca"):
        hands.cast(name, b"%d" % number, number % 3)
    hands.stabilize()
    hands.add("d")
    hands.join("d", "b")
    hands.cast("c", b"while d joins")
    hands.stabilize()
    hands.leave("a")
    hands.cast("d", b"while a leaves", 1)
    hands.stabilize()
    for name in "bcd":
        hands.cast(name, b"after", 1)
    hands.stabilize()


def goes_on(hands: Tape) -> None:
    """The group does, and all see the same."""
    hands.cast("c", b"at the end", 1)
    hands.stabilize()
    for name in "bcd":
        assert hands[name].bodies == hands["b"].bodies
        assert hands[name].bodies[-1] == b"at the end"
        assert hands[name].exited is None


@pytest.mark.parametrize("kind", [HELLO, CAST, SEND])
def test_old_frames_change_nothing(kind: int) -> None:
    hands = Tape()
    history(hands)
    before = repr(hands.state())
    for _ in range(2):
        hands.replay(kind)
    assert repr(hands.state()) == before
    goes_on(hands)


def test_the_layer_of_views_keeps_those_of_older_views_away_from_any_layer() -> None:
    """Also from one that has no numbers of its own (I16)."""
    hands = Tape("MBRSHIP:COM:sim")
    hands.watch = Checker()
    hands.form("a b c")
    hands.cast("b", b"cast")
    hands.call("b", partial(hands.endpoints["b"].stack.send, Message(b"send"), (2,)))
    hands.stabilize()
    hands.leave("a")
    hands.stabilize()
    for name in "bc":
        view = hands[name].installed
        assert view is not None
        assert len(view.members) == 2
    before = [(hands[name].bodies, list(hands[name].sends)) for name in "bc"]
    assert before[1] == ([b"cast"], [(1, b"send")])
    hands.replay(CAST, SEND)
    assert [(hands[name].bodies, list(hands[name].sends)) for name in "bc"] == before


def test_frames_that_come_twice_change_nothing() -> None:
    once, twice = Tape(), Tape(copies=2)
    for hands in (once, twice):
        history(hands)
    assert repr(twice.state()) == repr(once.state())
    goes_on(twice)


def test_no_member_complains_of_what_comes_twice() -> None:
    hands = Tape(copies=2)
    hands.form("a b c")
    for number, name in enumerate("abcbca"):
        hands.cast(name, b"%d" % number, number % 3)
    hands.stabilize()
    assert not [error for name in "abc" for error in hands[name].errors]
