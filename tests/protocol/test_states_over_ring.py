"""A joiner's state comes at once, though nothing waits at the members that have to do with it (ADR-29)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, permutations

from tests.lib.manual_network import ManualNetwork
from tests.lib.recording_application import RecordingApplication

STACK = "XFER:RING(slots=64,lane=65536):MBRSHIP:COM:sim"
LONG = 10**13
"""ns: no member looks by itself."""

STEPS = 100
"""Frames from one to another, at most."""

Giving = Callable[[RecordingApplication], Iterator[bytes]]


def giving(give: Giving = RecordingApplication.up_give_state) -> ManualNetwork:
    """a gives its state to c, as `give` says, and is not through; a and b have slept since others wrote, and nothing waits."""
    network = ManualNetwork(STACK)
    network.freshness = LONG
    network.form("a b")
    network["a"].piece = 1  # more of them than are given ahead
    network["a"].up_give_state = partial(give, network["a"])  # type: ignore[method-assign]
    for number in range(20):
        network.cast("b", b"%d" % number)
    network.add("c")
    network.join("c", "a")
    pairs = [pair for pair in permutations("abc", 2) if pair != ("a", "c")]
    for _ in range(STEPS):
        while sum(network.deliver(*pair) for pair in pairs):
            pass
        network.deliver("a", "c")
        if network.members("b") == "a b c" and is_read(network, "b"):
            break
    assert not state_of(network, "c")["complete"]
    for name in "ab":
        network.endpoints[name].stack.waiting = 0
    assert rests(network, "a", "b")
    assert rests(network, "b", "a")
    return network


def is_read(network: ManualNetwork, name: str) -> bool:
    """Whether all members read what this one writes."""
    network.cast(name, b"news")
    return network.endpoints[name].stack.dump()["RING"]["unordered"] == 0


def state_of(network: ManualNetwork, name: str) -> dict[str, object]:
    """How a member stands with state."""
    found: dict[str, object] = network.endpoints[name].stack.dump()["XFER"]
    return found


def rests(network: ManualNetwork, name: str, writer: str) -> bool:
    """Whether a member has looked at some news, and is not woken by more."""
    network.cast(writer, b"news")
    network.cast(writer, b"more news")
    return network[name].bodies[-1] != b"more news"


def test_a_write_waits_for_a_joiners_state_no_longer_than_that_takes() -> None:
    """Three members are to hold it, of which one is the joiner; nothing waits for it where it is written."""
    network = giving()
    network.cast("b", b"of degree 2", degree=2)
    network.stabilize()
    assert network["b"].bodies[-1] == b"of degree 2"


def test_one_that_gives_its_state_leaves_when_the_joiner_has_it() -> None:
    network = giving()
    network.leave("a")
    network.stabilize()
    assert network["a"].exited is not None
    assert network.members("b") == "b c"


def test_one_that_is_asked_for_the_state_in_place_of_another_one_gives_it() -> None:
    def fail(application: RecordingApplication) -> Iterator[bytes]:
        yield from islice(RecordingApplication.up_give_state(application), 15)
        raise ValueError("no more")

    network = giving(fail)
    network.monitor = None
    network[
        "c"
    ].monitor = None  # it has the state of one and the same view, but as of a later place
    network.stabilize()
    assert state_of(network, "c")["complete"]
