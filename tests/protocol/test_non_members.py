"""What an endpoint outside of the view sends changes nothing, and is not kept (promise 14)."""

from __future__ import annotations

from functools import partial

import msgpack
import pytest

from orcalike.transport.membership import early
from orcalike.transport.membership.attribution import BELIEVED, Standing
from tests.lib.manual_network import ManualNetwork
from tests.protocol.test_bad_frames import (
    CONTROL,
    control,
    data,
    frame,
    group,
    hello,
    non_member,
    of_member,
    unwatched,
    works,
)

NESTED = b"\x91" * 1000 + b"\x90"
X = ["sim:x", 9, 7, False]
HERE, AHEAD = [1, 3, 1024], [1, 99, 0]
"""The view that is installed, and one that is not."""
LATER = [1, 9, 0, [X], True, [1, 8, 0]]


def raw(body: bytes) -> bytes:
    """A control message of these bytes, from a non-member."""
    return frame(4, CONTROL.to_bytes(8, "little") + body)


def state_of(network: ManualNetwork, name: str) -> object:
    """All that a member knows, but for its links and what it has counted as dropped."""
    layers = network.endpoints[name].stack.dump()
    layers.pop("COM")
    return {
        layer: {key: value for key, value in facts.items() if key not in ("stale", "early")}
        for layer, facts in layers.items()
    }


def greeted(network: ManualNetwork, target: str) -> int:
    """A link of a non-member to `target`, with its greeting."""
    link = non_member(network, target)
    network.inject(target, link, hello("group", "sim:x", 9))
    return link


FORGED: dict[str, bytes] = {
    "EXPELLED": control("EXPELLED", LATER, 1, ""),
    "INSTALL": control("INSTALL", [1, 4, 0, [X, ["sim:a", 1, 0, False]], True, HERE], b""),
    "INSTALL of a new lineage": control("INSTALL", [1 << 24 | 5, 4, 5, [X], True, HERE], b""),
    "SHIP": control("SHIP", HERE, msgpack.packb([3, 1, 9, 0, 0, b"\0forged"])),
    "SHIP in the view": control("SHIP", msgpack.packb([3, 1, 9, 0, 0, b"\0forged"])),
    "BEHIND": control("BEHIND", AHEAD, b"\x92\x01\x01"),
    "GONE": control("GONE"),
    "DENIED": control("DENIED", "go away"),
    "LEAVE": control("LEAVE"),
    "HERE": control("HERE"),
    "HELD_UP": control("HELD_UP"),
    "WAITS": control("WAITS"),
    "ALIVE": control("ALIVE"),
    "SLOW": control("SLOW", 1),
    "RESET": control("RESET", 1),
    "RESET_FAILED": control("RESET_FAILED", "no"),
    "FLUSH": control("FLUSH", 1 << 10, b"\x92\x01\x01", []),
    "FLUSH_OK": control("FLUSH_OK", 1 << 10, b"\x92\x01\x01", None, [1, 2], 2, [], 0, False),
    "PROMISED": control("PROMISED", (1 << 24) - 1),
    "PROPOSE": control("PROPOSE", 1 << 10, [1, 4, 1 << 10, [X], True, HERE], b""),
    "ACCEPT": control("ACCEPT", 1 << 10),
    "CHOSEN": control("CHOSEN", 1 << 10),
    "BLOCKED": control("BLOCKED", [1, 2], "made up"),
    "LOST": control("LOST", 1),
    "NOWHERE": control("NOWHERE", 1, 3, X, {}),
    "NOWHERE of another": control("NOWHERE", 1, 3, ["sim:y", 99, None, False], {}),
    "TAKEN": control("TAKEN", 1, X),
    "INSIDE": control("INSIDE", 1),
    "JOIN of another": control("JOIN", ["sim:y", 99, None, False], {}),
    "JOIN of a member": control("JOIN", ["sim:b", 2, None, False], {}),
    "JOIN with options": control("JOIN", X, {"resilience": [[[[1]]]]}),
    "JOIN with many options": control("JOIN", X, {str(i): i for i in range(99)}),
}


def test_each_kind_of_control_message_is_forged() -> None:
    assert {name.split()[0] for name in FORGED} == set(BELIEVED)


@pytest.mark.parametrize("kind", [3, 4], ids=["sent", "by contact"])
@pytest.mark.parametrize("in_view", [False, True], ids=["in no view", "in the view"])
@pytest.mark.parametrize("what", FORGED)
def test_no_control_message_of_a_non_member_changes_anything(
    what: str, in_view: bool, kind: int
) -> None:
    for target in "ab":
        network = group()
        key = CONTROL
        if in_view:
            view = network[target].installed
            assert view is not None
            key |= view.number << 24 | view.ballot
        before = state_of(network, target)
        link = greeted(network, target)
        network.inject(target, link, frame(kind, key.to_bytes(8, "little") + FORGED[what][16:]))
        assert state_of(network, target) == before
        network.stabilize()
        assert state_of(network, target) == before
        works(network, "a", "b", "c")


@pytest.mark.parametrize("kind", [3, 4], ids=["sent", "by contact"])
def test_one_that_listens_nowhere_and_is_gone_is_forgotten(kind: int) -> None:
    """Also if the member answers it: no message reaches it any more."""
    network = group()
    end = network.endpoints["a"]
    peers = end.stack.dump()["COM"]["peers"]
    link = non_member(network, "a")
    network.inject("a", link, hello("group", "", 9))
    network.inject("a", link, of_member(network, b"\1\0\xff\xff" + bytes(64), kind))
    network.call("a", partial(end.stack.link_down, link, "closed"))
    network.stabilize()
    assert end.stack.dump()["COM"]["peers"] == peers
    works(network, "a", "b", "c")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (NESTED, "a control message that is nested too deep"),
        (b"\xdd\xff\xff\xff\xff", "a control message of too many elements"),
        (b"\xdf\x7f\xff\xff\xff", "a control message of too many elements"),
        (b"\xdd\x00\x00\x70\x00" + b"\x90" * 10, "a control message that is not msgpack"),
        (b"\xc6\xff\xff\xff\xff", "a control message that is not msgpack"),
        (b"\x91\xc7\x01\x05x", "a control message that is not msgpack"),
        (msgpack.packb(["J" * 5000]), "a control message that is not msgpack"),
        (msgpack.packb([["JOIN"]]), "a control message of no kind"),
        (msgpack.packb(["\x1b[2J"]), "a control message of no kind"),
        (msgpack.packb(["JOIN", "\x1b[2J", {}]), "JOIN out of place"),
        (msgpack.packb(["JOIN", ["\x1b[2J:", 9, None, False], {}]), "not a member"),
    ],
)
def test_a_control_message_past_the_bounds_ends_its_link(body: bytes, why: str) -> None:
    """And no text of it is shown, whatever it is."""
    network = group()
    before = state_of(network, "a")
    link = greeted(network, "a")
    network.inject("a", link, raw(body))
    assert network["a"].errors == [f"link {link} refused: {why}"]
    assert network.endpoints["a"].links[link] is None
    assert state_of(network, "a") == before
    works(network, "a", "b", "c")


def test_what_goes_wrong_in_the_core_for_a_non_member_ends_its_link() -> None:
    """Whatever it is: an error of the core's own, too."""
    network = group()
    link = greeted(network, "a")

    def fail(*args: object) -> None:
        raise RecursionError("deep")

    mbrship = network.endpoints["a"].stack.focus("MBRSHIP")
    mbrship.agreement.step = fail  # type: ignore[union-attr]
    network.inject("a", link, control("JOIN", X, {}))
    assert network["a"].errors == [f"link {link} refused: RecursionError came of what it sent"]
    assert network.endpoints["a"].links[link] is None


def kept(network: ManualNetwork, name: str) -> int:
    """The bytes that a member keeps for views to come."""
    return int(str(network.endpoints[name].stack.dump()["MBRSHIP"]["early"]))


@pytest.mark.parametrize("size", [0, 1000])
def test_what_a_non_member_says_in_a_view_to_come_is_hardly_kept(size: int) -> None:
    network = group()
    link = greeted(network, "a")
    for _ in range(early.OTHER_BYTES_MAX):
        network.inject("a", link, data(bytes(size), view=9))
        assert kept(network, "a") <= early.OTHER_BYTES_MAX
        if network.endpoints["a"].links[link] is None:
            break
    assert network["a"].errors == [f"link {link} refused: too much of views that are still to come"]
    assert kept(network, "a") == 0
    works(network, "a", "b", "c")


def test_what_many_non_members_say_in_a_view_to_come_is_hardly_kept() -> None:
    network = group()
    count = 2 * early.OTHERS_BYTES_MAX // early.OTHER_BYTES_MAX
    links = [non_member(network, "a") for _ in range(count)]
    for number, link in enumerate(links):
        network.inject("a", link, hello("group", "", 100 + number))
        for _ in range(early.OTHER_BYTES_MAX // (early.OVERHEAD + 16)):
            if network.endpoints["a"].links[link] is not None:
                network.inject("a", link, data(b"", view=9))
        assert kept(network, "a") <= early.OTHERS_BYTES_MAX
    network.endpoints["a"].links[links[-1]] = None
    network.call("a", lambda now: network.endpoints["a"].stack.link_down(links[-1], "gone", now))
    works(network, "a", "b", "c")


def test_what_a_member_says_in_a_view_to_come_has_a_bound() -> None:
    """Past it the link is closed; the group goes on with a new view."""
    network = unwatched("XFER:TOTAL:MBRSHIP:COM:sim")
    network.form("a b c")
    link = network.link("a", "b")
    large = data(bytes(1 << 20), view=9)
    for _ in range(100):
        network.inject("a", link, large)
        assert kept(network, "a") <= early.MEMBER_BYTES_MAX
        if network.endpoints["a"].links[link] is None:
            break
    assert "too much of views that are still to come" in network["a"].errors[-1]
    network.stabilize()
    works(network, "a", "c")


def test_a_former_member_may_still_say_that_this_one_is_out() -> None:
    """An old member that has left the view, and gone on in another one, is believed."""
    assert Standing.FORMER in BELIEVED["EXPELLED"]
    network = unwatched("XFER:TOTAL:MBRSHIP:COM:sim")
    network.form("a b c")
    network.leave("c")
    network.stabilize()
    link = non_member(network, "b")
    network.inject("b", link, hello("group", "sim:c", 3))
    me = network.endpoints["b"].stack.me.incarnation
    network.inject("b", link, control("EXPELLED", LATER, me, ""))
    assert network["b"].exited is not None


def test_a_reused_link_does_not_speak_for_the_one_before() -> None:
    """What was kept of one peer is dropped with its link, and never taken for another's."""
    network = group()
    link = network.link("a", "b")
    peer = network.endpoints["a"].links[link]
    assert peer is not None
    network.inject("a", link, data(bytes(60), view=4))
    network.break_links("a", "b")
    assert kept(network, "a") == 0


def test_a_lie_in_the_order_ends_the_membership() -> None:
    """A packet that its sender cannot have made so: all see it at the same place."""
    network = unwatched("PACK:XFER:TOTAL:MBRSHIP:COM:sim")
    network.form("a b c")
    lie = b"\x01\0\x01\0\0\0\0\0" + (2).to_bytes(8, "little") + (3).to_bytes(8, "little")
    lie += (3).to_bytes(8, "little") + bytes(8) + b"\0"  # XFER's kind, and half of PACK's header
    network.inject("a", network.link("a", "b"), of_member(network, lie, 3))
    network.stabilize()
    view = network["a"].installed
    assert view is not None
    assert [member.incarnation for member in view.members] == [1, 3]
    assert any("member 1" in error for error in network["c"].errors)


def test_what_a_non_member_makes_this_member_ask_is_no_own_question() -> None:
    """It says that it is ahead; what it answers then is not believed."""
    network = group()
    link = greeted(network, "a")
    before = state_of(network, "a")
    network.inject("a", link, control("BEHIND", AHEAD, b"\x92\x01\x01"))
    network.inject("a", link, data(bytes(60), view=99))
    network.inject("a", link, control("EXPELLED", LATER, 1, ""))
    network.inject(
        "a", link, control("INSTALL", [1, 4, 3, LATER[3], True, HERE], b"\x95\x01\x01\0\x90\x90")
    )
    assert state_of(network, "a") == before
    works(network, "a", "b", "c")
