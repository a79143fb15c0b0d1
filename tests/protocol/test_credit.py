"""Credit in bytes: the sequencer is a window ahead of the slowest member, and not a packet more."""

from __future__ import annotations

from typing import cast

from tests.protocol.hands import Hands

WINDOW = 400


def group() -> Hands:
    """Three members; c applies nothing."""
    hands = Hands(f"XFER:TOTAL(bytes={WINDOW}):MBRSHIP:COM:sim")
    hands.form("a b c")
    return hands


def total(hands: Hands, name: str, what: str) -> int:
    """What TOTAL of a member knows."""
    return cast(int, hands.endpoints[name].stack.dump()["TOTAL"][what])


def kept(hands: Hands) -> int:
    """Bytes that the sequencer is ahead."""
    return total(hands, "a", "kept")


def test_a_packet_that_would_go_past_the_window_waits() -> None:
    hands = group()
    hands.credit("c", given=False)
    for _ in range(3):
        hands.cast("b", bytes(100))
    hands.cast("b", bytes(300))
    hands.cast("b", bytes(1))
    hands.stabilize()
    assert kept(hands) <= WINDOW
    assert total(hands, "a", "queue") == 2
    hands.credit("c", given=True)
    hands.stabilize()
    assert total(hands, "a", "queue") == 0


def test_requests_of_one_member_that_wait_are_bounded() -> None:
    """PACK allows a member 65,536 messages: one with more under way lies, and loses its link."""
    hands = group()
    hands.credit("c", given=False)
    for _ in range(8):
        hands.cast("b", bytes(100))
    request = hands.frames("b")[-1]
    hands.stabilize()
    link = hands.link("a", "b")
    waiting = total(hands, "a", "queue")
    assert 0 < waiting < 8
    for _ in range(65_536 - waiting):
        hands.inject("a", link, request)
    assert total(hands, "a", "queue") == 65_536
    assert not hands["a"].errors
    hands.inject("a", link, request)
    assert "65537 requests of one member wait for their numbers" in str(hands["a"].errors)
    assert total(hands, "a", "queue") <= 65_536


def test_one_that_is_larger_than_the_window_goes_alone() -> None:
    hands = group()
    for size in (90, 5 * WINDOW, 1, 5 * WINDOW, 5 * WINDOW):
        hands.cast("b", bytes(size))
        hands.cast("a", bytes(size))
    hands.stabilize()
    for name in "abc":
        assert total(hands, name, "queue") == total(hands, name, "unordered") == 0
        assert total(hands, name, "next") == total(hands, name, "held") == total(hands, "a", "next")
