"""The manual network is watched by all checkers, whatever the bodies of the casts are."""

from __future__ import annotations

import pytest

from orcalike.simulator.checkers import CHECKERS
from orcalike.simulator.checkers.facts import Installed, Violation
from tests.lib.manual_network import ManualNetwork
from tests.lib.recording_application import AnyBodies

A, B = 0xA, 0xB
BOTH = Installed((1, 2, 0), (A, B))


def monitor() -> AnyBodies:
    """A and B are in one view; A has cast two equal bodies and another one."""
    watching = AnyBodies()
    for member in (A, B):
        watching.view(member, BOTH)
    for body in (b"x", b"x", b"y"):
        watching.cast(A, body)
    return watching


def test_equal_bodies_are_casts_of_their_own() -> None:
    watching = monitor()
    for member in (A, B):
        for seqno, body in enumerate((b"x", b"x", b"y"), 1):
            watching.deliver(member, (seqno, 0), A, body)
    watching.finish([A, B])
    assert watching.delivered == 6


@pytest.mark.parametrize(
    ("invariant", "bodies"),
    [
        ("I3", [b"x", b"x", b"x"]),
        ("I3", [b"x", b"x", b"y", b"y"]),
        ("I5", [b"x", b"z"]),
        ("I6", [b"x", b"y"]),
        ("I6", [b"y"]),
    ],
)
def test_what_is_delivered_is_the_next_cast_of_its_sender(
    invariant: str, bodies: list[bytes]
) -> None:
    watching = monitor()
    *right, wrong = enumerate(bodies, 1)
    for seqno, body in right:
        watching.deliver(A, (seqno, 0), A, body)
    with pytest.raises(Violation) as caught:
        watching.deliver(A, (wrong[0], 0), A, wrong[1])
    assert caught.value.id == invariant


def test_each_member_of_a_network_reports_to_all_checkers() -> None:
    network = ManualNetwork()
    assert network.monitor is not None
    assert [type(each) for each in network.monitor.checkers] == list(CHECKERS)
    network.form("a b")
    network.cast("b", b"x")
    network.stabilize()
    network.add("c")
    network.join("c", "a")
    network.stabilize()
    network.cast("c", b"y")
    network.stabilize()
    network.monitor.finish([network[name].me for name in "abc"])
    assert network.monitor.delivered == 2 + 3
    network.monitor.facts.casts.clear()
    with pytest.raises(Violation, match="never cast"):
        network.monitor.deliver(network["a"].me, (9, 0), network["b"].me, b"x")


def test_a_joiner_begins_with_the_state_that_the_others_have() -> None:
    network = ManualNetwork()
    network.form("a b")
    network.cast("a", b"x")
    network.stabilize()
    network["a"].history.pop()
    network.add("c")
    network.join("c", "a")
    with pytest.raises(Violation, match=r"I17: .* its state at"):
        network.stabilize()
