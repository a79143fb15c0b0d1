"""A member that stays behind for `slow_timeout` is expelled: this one, then, and no other (F17)."""

from __future__ import annotations

import pytest

from orcalike.transport.config import StackConfig
from tests.lib.manual_network import ManualNetwork

SLOW = StackConfig("group").slow
STACK = "XFER:TOTAL(packets=4):MBRSHIP:COM:sim"


def group(names: str) -> ManualNetwork:
    """A group in which four packets may be under way."""
    network = ManualNetwork(STACK)
    network.form(names)
    return network


def wait(network: ManualNetwork, span: int, *, deliver: bool = True, hung: str = "") -> None:
    """So much time passes; the members receive each other's beats all the while.

    The `hung` one beats, and does nothing else.
    """
    end = network.now + span
    while network.now < end:
        network.now = min(network.now + SLOW // 8, end)
        for name, endpoint in network.endpoints.items():
            for member in endpoint.stack.beats:
                endpoint.stack.heard(member.incarnation, network.now)
            if name != hung:
                network.call(name, endpoint.stack.expire)
        if deliver:
            deliver_all(network, hung)


def deliver_all(network: ManualNetwork, hung: str = "") -> None:
    """Let all arrive, but for what is for the `hung` one."""
    names = list(network.endpoints)
    pairs = [(one, other) for one in names for other in names if other != hung]
    while sum(network.deliver(one, other) for one, other in pairs):
        pass


def cast(network: ManualNetwork, count: int) -> None:
    """b casts, and the packets come as far as they may."""
    for number in range(count):
        network.cast("b", b"%d" % number)
    network.stabilize()


def test_the_slowest_is_out_when_the_others_have_waited_so_long() -> None:
    """d applies two more packets than c, and the others all: only c delays all the others."""
    network = group("a b c d")
    network.credit("c", False)
    cast(network, 2)
    network.credit("d", False)
    cast(network, 4)
    assert len(network["b"].bodies) == 4, "four are under way, two wait"
    wait(network, SLOW - 1)
    assert network.members("a") == "a b c d"
    assert network["c"].exited is None
    wait(network, 1)
    assert network.members("a") == "a b d"
    assert network["c"].exited is not None
    assert network["c"].exited.endswith(
        " went on without this member: it was too slow to take what was ordered, or sent what cannot be true"
    )
    assert len(network["b"].bodies) == 6
    assert network["d"].exited is None


def test_a_member_that_gets_on_in_time_has_all_the_time_anew() -> None:
    network = group("a b c")
    network.credit("c", False)
    cast(network, 9)
    for _ in range(2):
        wait(network, SLOW - 1)
        network.credit("c", True)
        network.credit("c", False)
        network.stabilize()
    wait(network, SLOW - 1)
    assert network.members("a") == "a b c"
    assert len(network["b"].bodies) == 9
    network.credit("c", True)
    network.stabilize()
    wait(network, 2 * SLOW)
    assert network.members("a") == "a b c"
    assert network["c"].bodies == network["b"].bodies


def test_a_member_that_is_behind_and_delays_no_other_stays() -> None:
    network = group("a b c")
    network.credit("c", False)
    cast(network, 4)
    wait(network, 3 * SLOW)
    assert network.members("a") == "a b c"
    network.credit("c", True)
    cast(network, 4)
    assert network["c"].bodies == network["b"].bodies
    assert len(network["b"].bodies) == 8


def test_the_time_counts_from_when_others_have_to_wait() -> None:
    """Not from when it fell behind."""
    network = group("a b c")
    network.credit("c", False)
    cast(network, 4)
    wait(network, SLOW // 2)
    cast(network, 1)
    wait(network, SLOW - 1)
    assert network.members("a") == "a b c"
    wait(network, 1)
    assert network.members("a") == "a b"


@pytest.mark.parametrize("count", [4, 5])
def test_a_member_that_holds_nothing_back_never_leaves_by_that(count: int) -> None:
    """The others are not out with the slow one, though they hold no more than it does."""
    network = group("a b c")
    network.credit("c", False)
    cast(network, count)
    wait(network, SLOW)
    assert network.members("a") == ("a b c" if count == 4 else "a b")
    assert network["b"].exited is None
    assert len(network["b"].bodies) == count


def test_a_member_that_beats_and_does_not_answer_a_change_of_view_is_out_after_that_time() -> None:
    network = group("a b c d e")
    network.leave("e")
    network.deliver("e", "a")
    for name in "cde":
        network.deliver("a", name)
        network.deliver(name, "a")
    for span in (SLOW // 2, SLOW - 1 - SLOW // 2):
        wait(network, span, deliver=False)
        for _ in range(2):  # they ask whether it is there, and it answers
            for name in "cde":
                network.deliver("a", name)
                network.deliver(name, "a")
    assert network.members("a") == "a b c d e"
    wait(network, 1, deliver=False)
    for _ in range(3):
        for name in "cde":
            network.deliver("a", name)
            network.deliver(name, "a")
    assert network.members("a") == "a c d"


def test_no_member_is_out_while_the_sequencer_itself_applies_nothing() -> None:
    """All are held up alike, by an operation that takes long everywhere, say."""
    network = group("a b c")
    for name in "abc":
        network.credit(name, False)
    cast(network, 8)
    wait(network, 3 * SLOW)
    assert network.members("a") == "a b c"
    network.credit("a", True)
    network.stabilize()
    wait(network, SLOW - 1)
    assert network.members("a") == "a b c", "from here on they have as long as ever"
    for name in "bc":
        network.credit(name, True)
    network.stabilize()
    assert len(network["b"].bodies) == 8


# A sequencer that hangs: its heartbeats go on, and nothing else.


def test_a_sequencer_that_hangs_is_out_if_a_write_waits_for_it() -> None:
    network = group("a b c")
    wait(network, 3 * SLOW, hung="a")
    assert network.members("b") == "a b c", "nothing waits for it"
    network.cast("b", b"x", degree=1)
    wait(network, SLOW - 1, hung="a")
    assert network.members("b") == "a b c"
    wait(network, SLOW, hung="a")
    assert network.members("b") == network.members("c") == "b c"
    assert network["b"].bodies == network["c"].bodies == [b"x"]
    deliver_all(network)
    assert network["a"].exited is not None


def test_a_leader_that_hangs_is_out_if_a_change_of_view_waits_for_it() -> None:
    network = group("a b c d")
    network.break_links("c", "d")
    wait(network, SLOW - 1, hung="a")
    assert network.members("b") == "a b c d"
    wait(network, SLOW // 4, hung="a")
    assert {network.members(name) for name in "bcd"} == {"b c d"}


def test_a_leader_that_hangs_in_a_change_of_view_is_out() -> None:
    """It has asked all others for their reports, and they wait for what follows from them."""
    network = group("a b c d")
    network.leave("d")
    network.deliver("d", "a")
    wait(network, SLOW - 1, hung="a")
    assert network.members("b") == "a b c d"
    wait(network, SLOW // 4, hung="a")
    assert network.members("b") == network.members("c")
    assert "a" not in network.members("b")


def test_the_oldest_hangs_and_only_one_of_the_others_has_waited_for_it() -> None:
    """The order in memory is full for b alone: c learns that a hangs because b asks for a new view."""
    network = ManualNetwork("XFER:RING(slots=16,lane=65536):MBRSHIP:COM:sim")
    network.form("a b c")
    network.asleep = {"a"}
    for number in range(40):
        network.cast("b", b"%d" % number)
    assert network.members("b") == "a b c"
    assert len(network["c"].bodies) < 40
    wait(network, 3 * SLOW, hung="a")
    assert network.members("b") == network.members("c") == "b c"
    assert network["b"].bodies == network["c"].bodies == [b"%d" % number for number in range(40)]


def test_a_leader_that_goes_on_before_the_time_is_over_stays() -> None:
    network = group("a b c")
    network.cast("b", b"x", degree=1)
    for span in (SLOW + SLOW // 4, SLOW - 1, SLOW - 1):
        wait(network, span, hung="a")
        deliver_all(network)
        network.cast("b", b"x", degree=1)
    assert network.members("b") == network.members("a") == "a b c"


def test_a_member_that_was_late_itself_asks_again_before_it_gives_the_sequencer_up() -> None:
    """It stood still when the answer was due."""
    network = group("a b")
    network.cast("b", b"x", degree=1)
    wait(network, SLOW, hung="a")
    network.now += SLOW
    network.endpoints["b"].stack.heard(network["a"].me, network.now)
    network.call("b", network.endpoints["b"].stack.expire)
    before = network["b"].installed
    deliver_all(network)
    assert network["b"].installed == network["a"].installed == before
    assert network["b"].bodies == [b"x"]
