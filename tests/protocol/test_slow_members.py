"""A member that stays behind for `slow_timeout` is expelled: this one, then, and no other (F17)."""

from __future__ import annotations

import pytest

from orcalike.transport.config import StackConfig
from tests.protocol.hands import Hands

SLOW = StackConfig("group").slow
STACK = "XFER:TOTAL(packets=4):MBRSHIP:COM:sim"


def group(names: str) -> Hands:
    """A group in which four packets may be under way."""
    hands = Hands(STACK)
    hands.form(names)
    return hands


def wait(hands: Hands, span: int, *, deliver: bool = True, hung: str = "") -> None:
    """So much time passes; the members hear each other's beats all the while.

    The `hung` one beats, and does nothing else.
    """
    end = hands.now + span
    while hands.now < end:
        hands.now = min(hands.now + SLOW // 8, end)
        for name, endpoint in hands.endpoints.items():
            for member in endpoint.stack.beats:
                endpoint.stack.heard(member.incarnation, hands.now)
            if name != hung:
                hands.call(name, endpoint.stack.expire)
        if deliver:
            deliver_all(hands, hung)


def deliver_all(hands: Hands, hung: str = "") -> None:
    """Let all arrive, but for what is for the `hung` one."""
    names = list(hands.endpoints)
    pairs = [(one, other) for one in names for other in names if other != hung]
    while sum(hands.deliver(one, other) for one, other in pairs):
        pass


def members(hands: Hands, name: str = "a") -> str:
    """The members of the view that `name` has installed."""
    view = hands[name].installed
    assert view is not None
    return " ".join(member.address.removeprefix("sim:") for member in view.members)


def cast(hands: Hands, count: int) -> None:
    """b casts, and the packets come as far as they may."""
    for number in range(count):
        hands.cast("b", b"%d" % number)
    hands.stabilize()


def test_the_slowest_is_out_when_the_others_have_waited_so_long() -> None:
    """d applies two more packets than c, and the others all: only c delays all the others."""
    hands = group("a b c d")
    hands.credit("c", False)
    cast(hands, 2)
    hands.credit("d", False)
    cast(hands, 4)
    assert len(hands["b"].bodies) == 4, "four are under way, two wait"
    wait(hands, SLOW - 1)
    assert members(hands) == "a b c d"
    assert hands["c"].exited is None
    wait(hands, 1)
    assert members(hands) == "a b d"
    assert hands["c"].exited is not None
    assert "expelled" in hands["c"].exited
    assert len(hands["b"].bodies) == 6
    assert hands["d"].exited is None


def test_a_member_that_gets_on_in_time_has_all_the_time_anew() -> None:
    hands = group("a b c")
    hands.credit("c", False)
    cast(hands, 9)
    for _ in range(2):
        wait(hands, SLOW - 1)
        hands.credit("c", True)
        hands.credit("c", False)
        hands.stabilize()
    wait(hands, SLOW - 1)
    assert members(hands) == "a b c"
    assert len(hands["b"].bodies) == 9
    hands.credit("c", True)
    hands.stabilize()
    wait(hands, 2 * SLOW)
    assert members(hands) == "a b c"
    assert hands["c"].bodies == hands["b"].bodies


def test_a_member_that_is_behind_and_delays_no_other_stays() -> None:
    hands = group("a b c")
    hands.credit("c", False)
    cast(hands, 4)
    wait(hands, 3 * SLOW)
    assert members(hands) == "a b c"
    hands.credit("c", True)
    cast(hands, 4)
    assert hands["c"].bodies == hands["b"].bodies
    assert len(hands["b"].bodies) == 8


def test_the_time_counts_from_when_others_have_to_wait() -> None:
    """Not from when it fell behind."""
    hands = group("a b c")
    hands.credit("c", False)
    cast(hands, 4)
    wait(hands, SLOW // 2)
    cast(hands, 1)
    wait(hands, SLOW - 1)
    assert members(hands) == "a b c"
    wait(hands, 1)
    assert members(hands) == "a b"


@pytest.mark.parametrize("count", [4, 5])
def test_a_member_that_holds_nothing_back_never_leaves_by_that(count: int) -> None:
    """The others are not out with the slow one, though they hold no more than it does."""
    hands = group("a b c")
    hands.credit("c", False)
    cast(hands, count)
    wait(hands, SLOW)
    assert members(hands) == ("a b c" if count == 4 else "a b")
    assert hands["b"].exited is None
    assert len(hands["b"].bodies) == count


def test_a_member_that_beats_and_does_not_answer_a_change_of_view_is_out_after_that_time() -> None:
    hands = group("a b c d e")
    hands.leave("e")
    hands.deliver("e", "a")
    for name in "cde":
        hands.deliver("a", name)
        hands.deliver(name, "a")
    for span in (SLOW // 2, SLOW - 1 - SLOW // 2):
        wait(hands, span, deliver=False)
        for _ in range(2):  # they ask whether it is there, and it answers
            for name in "cde":
                hands.deliver("a", name)
                hands.deliver(name, "a")
    assert members(hands) == "a b c d e"
    wait(hands, 1, deliver=False)
    for _ in range(3):
        for name in "cde":
            hands.deliver("a", name)
            hands.deliver(name, "a")
    assert members(hands) == "a c d"


def test_no_member_is_out_while_the_sequencer_itself_applies_nothing() -> None:
    """All are held up alike, by an operation that takes long everywhere, say."""
    hands = group("a b c")
    for name in "abc":
        hands.credit(name, False)
    cast(hands, 8)
    wait(hands, 3 * SLOW)
    assert members(hands) == "a b c"
    hands.credit("a", True)
    hands.stabilize()
    wait(hands, SLOW - 1)
    assert members(hands) == "a b c", "from here on they have as long as ever"
    for name in "bc":
        hands.credit(name, True)
    hands.stabilize()
    assert len(hands["b"].bodies) == 8


# A sequencer that hangs: its heartbeats go on, and nothing else.


def test_a_sequencer_that_hangs_is_out_if_a_write_waits_for_it() -> None:
    hands = group("a b c")
    wait(hands, 3 * SLOW, hung="a")
    assert members(hands, "b") == "a b c", "nothing waits for it"
    hands.cast("b", b"x", degree=1)
    wait(hands, SLOW - 1, hung="a")
    assert members(hands, "b") == "a b c"
    wait(hands, SLOW, hung="a")
    assert members(hands, "b") == members(hands, "c") == "b c"
    assert hands["b"].bodies == hands["c"].bodies == [b"x"]
    deliver_all(hands)
    assert hands["a"].exited is not None


def test_a_leader_that_hangs_is_out_if_a_change_of_view_waits_for_it() -> None:
    hands = group("a b c d")
    hands.break_links("c", "d")
    wait(hands, SLOW - 1, hung="a")
    assert members(hands, "b") == "a b c d"
    wait(hands, SLOW // 4, hung="a")
    assert {members(hands, name) for name in "bcd"} == {"b c d"}


def test_a_leader_that_hangs_in_a_change_of_view_is_out() -> None:
    """It has asked all others for their reports, and they wait for what follows from them."""
    hands = group("a b c d")
    hands.leave("d")
    hands.deliver("d", "a")
    wait(hands, SLOW - 1, hung="a")
    assert members(hands, "b") == "a b c d"
    wait(hands, SLOW // 4, hung="a")
    assert members(hands, "b") == members(hands, "c")
    assert "a" not in members(hands, "b")


def test_a_leader_that_goes_on_before_the_time_is_over_stays() -> None:
    hands = group("a b c")
    hands.cast("b", b"x", degree=1)
    for span in (SLOW + SLOW // 4, SLOW - 1, SLOW - 1):
        wait(hands, span, hung="a")
        deliver_all(hands)
        hands.cast("b", b"x", degree=1)
    assert members(hands, "b") == members(hands) == "a b c"


def test_a_member_that_was_late_itself_asks_again_before_it_gives_the_sequencer_up() -> None:
    """It stood still when the answer was due."""
    hands = group("a b")
    hands.cast("b", b"x", degree=1)
    wait(hands, SLOW, hung="a")
    hands.now += SLOW
    hands.endpoints["b"].stack.heard(hands["a"].me, hands.now)
    hands.call("b", hands.endpoints["b"].stack.expire)
    before = hands["b"].installed
    deliver_all(hands)
    assert hands["b"].installed == hands["a"].installed == before
    assert hands["b"].bodies == [b"x"]
