"""Packets over a quarter of a lane, which go into the order in parts."""

from __future__ import annotations

import ctypes
import os
import re
from array import array
from contextlib import suppress
from pathlib import Path

import pytest

from orcalike.transport.errors import ProtocolError
from tests.lib.manual_network import ManualNetwork

LANE = 16384
LARGEST = 1 << 24
HEADERS = 1
"""Bytes that the layers above RING put before a body."""


def group(names: str = "a b c", lane: int = LANE) -> ManualNetwork:
    """A group of these, at rest."""
    network = ManualNetwork(f"XFER:RING(slots=64,lane={lane}):MBRSHIP:COM:sim")
    network.form(names)
    return network


def bodies(network: ManualNetwork, name: str) -> list[bytes]:
    """What a member has delivered, in its order."""
    return [event[3] for event in network[name].history if isinstance(event, tuple)]


def kept(network: ManualNetwork, name: str) -> object:
    """Bytes of packets that are not whole at a member."""
    return network.endpoints[name].stack.dump()["RING"]["parts"]


def settle(network: ManualNetwork, names: str) -> None:
    """Let time pass until all have written what they wanted to, and have it."""
    network.asleep = set()
    for _ in range(20_000):
        network.now += 1_000_000
        for name in names:
            network.call(name, network.endpoints[name].stack.expire)
        network.call(names[0], network.endpoints[names[0]].stack.expire)  # wakes all
        orders = [network.endpoints[name].stack.dump()["RING"] for name in names]
        if (
            not any(order["unordered"] for order in orders)
            and len({each["slot"] for each in orders}) == 1
        ):
            return
    raise AssertionError("what was cast is not ordered")


def large(size: int) -> bytes:
    """A body whose parts differ."""
    return array("I", range(size // 4 + 1)).tobytes()[:size]


SIZES = [(LANE, size) for size in (LANE // 4 - 33, LANE // 4, LANE, 7 * LANE + 1)]


@pytest.mark.parametrize(("lane", "size"), [*SIZES, (1 << 20, LARGEST)])
def test_packets_of_any_size_come_whole_and_in_one_order(lane: int, size: int) -> None:
    network = group(lane=lane)
    network.cast("b", large(size), degree=2)
    network.cast("b", b"behind it")
    network.cast("c", b"of another")
    settle(network, "abc")
    assert bodies(network, "a") == bodies(network, "b") == bodies(network, "c")
    of_b = [each for each in bodies(network, "a") if each[:2] != b"of"][-2:]
    assert of_b == [large(size), b"behind it"]
    assert [kept(network, name) for name in "abc"] == [0, 0, 0]


def test_one_that_is_larger_than_all_may_be_is_refused() -> None:
    network = group("a")
    network.monitor = network["a"].monitor = None
    with pytest.raises(ValueError, match="a packet of 20000001 bytes: 16779264 are allowed"):
        network.cast("a", bytes(20_000_000))
    network.cast("a", b"the next one")
    assert bodies(network, "a")[-1] == b"the next one"


def test_others_write_between_the_parts() -> None:
    network = group()
    network.asleep = {"a", "c"}
    network.cast("b", large(5 * LANE))
    network.cast("c", b"small")
    assert bodies(network, "c")[-1] == b"small"
    settle(network, "abc")
    assert bodies(network, "a")[-2:] == bodies(network, "b")[-2:] == [b"small", large(5 * LANE)]


def test_one_that_a_view_has_interrupted_begins_anew_and_joiners_have_it() -> None:
    network = group()
    network.asleep = {"a", "c"}
    network.cast("b", large(9 * LANE), degree=2)
    network.cast("b", b"behind it")
    network.asleep = set()
    network.add("d")
    network.join("d", "a")
    network.stabilize()
    settle(network, "abcd")
    for name in "abcd":
        assert bodies(network, name)[-2:] == [large(9 * LANE), b"behind it"]
        assert bodies(network, name).count(large(9 * LANE)) == 1
        assert kept(network, name) == 0


def test_of_a_sender_that_is_put_out_midway_nothing_stays() -> None:
    network = group()
    network.asleep = {"a", "c"}
    network.cast("b", large(9 * LANE))
    network.asleep = {"b"}
    network.cast("a", b"small")
    assert kept(network, "a") not in (0, None)
    for name in "ac":
        network.break_links(name, "b")
    for _ in range(20):
        network.now += 100_000_000
        for name, other in ("ac", "ca"):
            network.expire(name, other)
            network.deliver(name, other, 99)
    settle(network, "ac")
    view = network["a"].installed
    assert view is not None
    assert len(view.members) == 2
    assert kept(network, "a") == kept(network, "c") == 0
    assert bodies(network, "a")[-1] == bodies(network, "c")[-1] == b"small"


def writable_lanes() -> list[int]:
    """Where the lanes of members of this process are, to be written."""
    maps = Path("/proc/self/maps").read_text()
    return [int(at, 16) for at in re.findall(r"^(\w+)-\w+ rw-s.*orcalike-lane", maps, re.MULTILINE)]


def overwrite(body: bytes, value: bytes) -> None:
    """Change what the packet with this body says of itself in a lane, as its broken owner can."""
    found = []
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for lane in writable_lanes():
            # Another test's may be unmapped meanwhile, by a collection of garbage.
            with suppress(OSError):
                at = os.pread(memory.fileno(), LANE, lane).find(body)
                found += [lane + at] if at >= 0 else []
    [place] = found
    ctypes.memmove(place - HEADERS - 15, value, len(value))


BROKEN = {
    "last, but later": b"\x02\x00\x00\x01",
    "first, but later": b"\x01\x00\x00\x01",
    "far away": b"\x02\x00\x00\xff\xff\xff\xff",
    "kind 3": b"\x03",
    "kind 255": b"\xff",
}


@pytest.mark.parametrize("value", BROKEN.values(), ids=BROKEN)
def test_a_part_that_cannot_be_is_an_error_with_a_name(value: bytes) -> None:
    network = group()
    network.asleep = {"a", "c"}
    body = os.urandom(72)  # lanes of other tests may still be mapped
    network.cast("b", body)
    overwrite(body, value)
    network.asleep = {"b", "c"}
    with pytest.raises(ProtocolError, match=r"slot \d+ of the order .* RING did not write"):
        network.call("a", network.endpoints["a"].stack.woken)
    assert bodies(network, "a") == []
    assert kept(network, "a") == 0


def test_a_first_part_of_a_broken_member_is_kept_until_the_view_ends() -> None:
    network = group()
    network.monitor = None  # one member has what the others have not
    for each in network.endpoints.values():
        each.application.monitor = None
    network.asleep = {"a", "c"}
    body = os.urandom(72)  # lanes of other tests may still be mapped
    network.cast("b", body)
    overwrite(body, b"\x01")
    settle(network, "ac")
    assert kept(network, "a") == kept(network, "c") == len(body) + HEADERS
    network.leave("b")
    network.stabilize()
    assert kept(network, "a") == kept(network, "c") == 0
    network.cast("a", b"they go on", degree=1)
    assert bodies(network, "a")[-1] == bodies(network, "c")[-1] == b"they go on"
