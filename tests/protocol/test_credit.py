"""Credit in bytes: the sequencer is a window ahead of the slowest member, and not a packet more."""

from __future__ import annotations

from typing import cast

from tests.lib.manual_network import ManualNetwork

WINDOW = 400


def group() -> ManualNetwork:
    """Three members; c applies nothing."""
    network = ManualNetwork(f"XFER:TOTAL(bytes={WINDOW}):MBRSHIP:COM:sim")
    network.form("a b c")
    return network


def total(network: ManualNetwork, name: str, what: str) -> int:
    """What TOTAL of a member knows."""
    return cast(int, network.endpoints[name].stack.dump()["TOTAL"][what])


def kept(network: ManualNetwork) -> int:
    """Bytes that the sequencer is ahead."""
    return total(network, "a", "kept")


def test_a_packet_that_would_go_past_the_window_waits() -> None:
    network = group()
    network.credit("c", given=False)
    for _ in range(3):
        network.cast("b", bytes(100))
    network.cast("b", bytes(300))
    network.cast("b", bytes(1))
    network.stabilize()
    assert kept(network) <= WINDOW
    assert total(network, "a", "queue") == 2
    network.credit("c", given=True)
    network.stabilize()
    assert total(network, "a", "queue") == 0


def test_requests_of_one_member_that_wait_are_bounded() -> None:
    """PACK allows a member 65,536 messages: one with more under way lies, and loses its link."""
    network = group()
    network.credit("c", given=False)
    for _ in range(8):
        network.cast("b", bytes(100))
    request = network.frames("b")[-1]
    network.stabilize()
    link = network.link("a", "b")
    waiting = total(network, "a", "queue")
    assert 0 < waiting < 8
    for _ in range(65_536 - waiting):
        network.inject("a", link, request)
    assert total(network, "a", "queue") == 65_536
    assert not network["a"].errors
    network.inject("a", link, request)
    assert "65537 requests of one member wait for their numbers" in str(network["a"].errors)
    assert total(network, "a", "queue") <= 65_536


def test_one_that_is_larger_than_the_window_goes_alone() -> None:
    network = group()
    for size in (90, 5 * WINDOW, 1, 5 * WINDOW, 5 * WINDOW):
        network.cast("b", bytes(size))
        network.cast("a", bytes(size))
    network.stabilize()
    for name in "abc":
        assert total(network, name, "queue") == total(network, name, "unordered") == 0
        assert (
            total(network, name, "next")
            == total(network, name, "held")
            == total(network, "a", "next")
        )
