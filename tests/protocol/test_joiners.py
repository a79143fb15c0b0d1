"""What a joiner casts before its state is complete, and state that several members give (I17, I28)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import pytest

from tests.protocol.application import Application
from tests.protocol.hands import STACK, Hands

Giving = Callable[[Application], Iterator[bytes]]

SECOND = 1_000_000_000


def stabilize(hands: Hands, *without: tuple[str, str]) -> None:
    """All arrives, but on these ways."""
    pairs = [pair for pair in permutations(hands.endpoints, 2) if pair not in without]
    while sum(hands.deliver(source, target) for source, target in pairs):
        pass


def members(hands: Hands, name: str) -> str:
    """The members of the view that `name` has installed."""
    view = hands[name].installed
    assert view is not None
    return " ".join(member.address.removeprefix("sim:") for member in view.members)


def joining(count: int, stack: str = STACK, give: Giving | None = None) -> Hands:
    """a and b, with so many casts behind them; c is let in, and no piece of state has come.

    a gives its state as `give` says.
    """
    hands = Hands(stack)
    hands.form("a b")
    if give is not None:
        hands["a"].up_give_state = partial(give, hands["a"])  # type: ignore[method-assign]
    for name in "ab":
        hands[name].piece = 1  # so that what others cast comes between the pieces
    for number in range(count):
        hands.cast("a", b"%d" % number)
    hands.stabilize()
    hands.add("c")
    hands.join("c", "a")
    stabilize(hands, ("a", "c"))
    hands.deliver("a", "c", 2)  # its greeting, and the view
    assert not hands["c"].history
    layer = hands.endpoints["c"].stack.focus("XFER")
    assert layer is not None
    assert not layer.dump()["complete"]
    return hands


def test_what_a_joiner_casts_before_it_has_its_state_is_delivered_behind_that() -> None:
    """All of it, once, in its order; also if others cast meanwhile."""
    hands = joining(20)
    mine = [b"of c: %d" % number for number in range(3)]
    for body in mine:
        hands.cast("c", body)
        hands.cast("b", b"meanwhile")
    hands.stabilize()
    for name in "abc":
        assert [body for body in hands[name].bodies if body.startswith(b"of c")] == mine
        assert hands[name].bodies == hands["a"].bodies
    assert len(hands["c"].bodies) == 26
    hands.leave("b")
    hands.stabilize()
    assert len(hands["c"].bodies) == 26, "nor once more with the next view"
    assert members(hands, "a") == members(hands, "c") == "a c"
    assert not [error for name in "abc" for error in hands[name].errors]
    hands.cast("c", b"at the end")
    hands.stabilize()
    assert [hands[name].bodies[26:] for name in "ac"] == [[b"at the end"]] * 2


@pytest.mark.parametrize("count", [0, 1, 20])
def test_a_joiners_cast_that_waits_for_its_own_state_is_delivered(count: int) -> None:
    """Three members must hold it, and c is one of them only when its state is complete."""
    hands = joining(count)
    hands.cast("c", b"x", degree=2)
    hands.stabilize()
    for name in "abc":
        assert hands[name].bodies[count:] == [b"x"]


def give_a_part(donor: Application) -> Iterator[bytes]:
    """The first pieces, and then no more."""
    for number, piece in enumerate(Application.up_give_state(donor)):
        if number == 12:
            raise OSError("out of order")
        yield piece


def test_what_a_joiner_casts_comes_back_to_it_also_if_another_donor_gives() -> None:
    """The state of the second donor is as of a later place in the order: what came before is in it.

    A cast of the joiner's own there would never be handed up to it, and PACK would wait for that.
    """
    hands = joining(20, f"PACK:{STACK}", give_a_part)
    hands.cast("c", b"x")
    hands.stabilize()
    layer = hands.endpoints["c"].stack.focus("XFER")
    assert layer is not None
    assert layer.dump()["tried"] == 1, "the first donor failed"
    hands.cast("c", b"y")
    hands.stabilize()
    for name in "abc":
        assert hands[name].bodies[20:] == [b"x", b"y"]


def test_a_change_of_view_while_the_state_comes_loses_none_of_a_joiners_casts() -> None:
    hands = joining(20)
    hands.cast("c", b"x")
    hands.leave("b")
    hands.cast("c", b"y")
    hands.stabilize()
    assert members(hands, "c") == "a c"
    assert hands["c"].bodies[-2:] == hands["a"].bodies[-2:] == [b"x", b"y"]
    assert hands["c"].bodies == hands["a"].bodies


@pytest.mark.parametrize("sizes", [(8, 3), (3, 8), (1, 30)])
def test_a_joiner_takes_its_state_from_one_of_several_that_give(sizes: tuple[int, int]) -> None:
    """The only member with replicas dies before it is known that b and c have all it had.

    Both give to d, each in pieces of its own size; a state of pieces of both is no member's.
    """
    hands = Hands()
    hands.form("w a", witness="w")
    for number in range(20):
        hands.cast("a", b"%d" % number)
    hands.stabilize()
    for name in "bc":
        hands.add(name)
        hands.join(name, "w")
        hands.deliver("w", name)
        hands.deliver(name, "w", 2)  # its greeting, and JOIN
    stabilize(hands, ("b", "w"), ("c", "w"))
    assert members(hands, "b") == "w a b c"
    for name, size in zip("bc", sizes, strict=True):
        assert len(hands[name].bodies) == 20
        hands[name].piece = size
    hands.cut_off("a")
    hands.add("d")
    hands.join("d", "w")
    hands.deliver("w", "d")
    hands.deliver("d", "w", 2)
    for _ in range(200):  # piece by piece, in turn
        for source, target in permutations("wbcd", 2):
            hands.deliver(source, target, 2 if source == "c" else 1)
    assert members(hands, "d") == "w b c d"
    assert hands["d"].history == hands["b"].history == hands["c"].history
    assert len(hands["d"].bodies) == 20
    hands.cast("d", b"after")
    hands.stabilize()
    assert [hands[name].bodies[20:] for name in "bcd"] == [[b"after"]] * 3


@pytest.mark.parametrize("arrived", [0, 1, 5])
def test_a_joiner_asks_another_member_if_its_donor_gives_nothing_any_more(arrived: int) -> None:
    """The donor beats, and its links stand; it hangs after so many frames."""
    hands = Hands()
    hands.form("w a b", witness="w")
    hands["a"].piece = hands["b"].piece = 1
    for number in range(20):
        hands.cast("a", b"%d" % number)
    hands.stabilize()
    hands.add("c")
    hands.join("c", "w")
    stabilize(hands, ("a", "c"), ("c", "a"))
    for _ in range(arrived):
        hands.deliver("a", "c")
        hands.deliver("c", "a")
    hangs = list(permutations("abcw", 2))
    hangs = [pair for pair in hangs if "a" in pair]
    end = hands.now + 100 * SECOND
    while hands.now < end:
        hands.now += SECOND // 10
        for name, endpoint in hands.endpoints.items():
            for member in endpoint.stack.beats:
                endpoint.stack.heard(member.incarnation, hands.now)
            if name != "a":
                hands.call(name, endpoint.stack.expire)
        stabilize(hands, *hangs)
    assert members(hands, "b").split()[:3] == ["w", "a", "b"], "no member waited for it but c"
    assert hands["c"].history == hands["b"].history
    hands.stabilize()
    assert hands["c"].history == hands["a"].history
