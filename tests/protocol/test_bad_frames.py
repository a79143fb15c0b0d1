"""Bad frames: whatever arrives, no exception escapes the stack, and others are not harmed (I30)."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

import msgpack
import pytest

from orcalike.transport.errors import ProtocolError
from orcalike.transport.layers.com import WIRE_VERSION, greeting_of
from tests.lib.manual_network import STACK, Endpoint, ManualNetwork

FULL = "PACK:XFER:TOTAL:MBRSHIP:COM:sim"
CONTROL = 1 << 63


def unwatched(stack: str) -> ManualNetwork:
    """Without checkers: if a member itself is made to lie, a history proves nothing."""
    network = ManualNetwork(stack)
    network.monitor = None
    return network


def frame(kind: int, body: bytes, magic: int = 0x4F, version: int = WIRE_VERSION) -> bytes:
    """A frame as COM makes them."""
    return (len(body) + 4).to_bytes(4, "little") + bytes([magic, version, kind, 0]) + body


def hello(*fields: object) -> bytes:
    return frame(1, msgpack.packb(fields))


def control(*fields: object, view: int = 0) -> bytes:
    """A control message to MBRSHIP; from a non-member, or from a member of view number `view`."""
    key = CONTROL | (view << 24 if view else 0)
    return frame(3 if view else 4, key.to_bytes(8, "little") + msgpack.packb(fields))


def data(layer: bytes, kind: int = 3, view: int = 3) -> bytes:
    """A message in the view with that number."""
    return frame(kind, (view << 24 | (1024 if view > 1 else 0)).to_bytes(8, "little") + layer)


def group(stack: str = STACK) -> ManualNetwork:
    """a, b and c are in a group, and a non-member x has a link to each of them."""
    network = ManualNetwork(stack)
    network.form("a b c")
    network.lines()
    return network


def non_member(network: ManualNetwork, target: str) -> int:
    """A new link to `target`, on which no greeting has come."""
    end = network.endpoints[target]
    far = Endpoint("x", end.stack, end.application)
    link = len(end.links)
    end.links.append((far, 0))
    end.queues.append(deque())
    far.links.append(None)
    network.call(target, lambda now: end.stack.link_up(link, "", now))
    return link


def works(network: ManualNetwork, *names: str) -> None:
    """The members with these names still order what they cast."""
    before = {name: len(network[name].bodies) for name in names}
    for name in names:
        network.cast(name, name.encode())
    network.stabilize()
    orders = [network[name].bodies[before[name] :] for name in names]
    assert sorted(orders[0]) == sorted(name.encode() for name in names)
    assert all(order == orders[0] for order in orders)


GREETINGS = {
    "empty": (b"", "a greeting of 0 bytes"),
    "nested": (frame(1, b"\x91" * 1000 + b"\x90"), "a greeting that is nested too deep"),
    "many elements": (hello("group", "sim:x", 9, 9), "a greeting of too many elements"),
    "address": (hello("group", "sim:\x1b[2J", 9), "a greeting with other fields"),
    "short": (hello("group", "sim:x", 9)[:7], "a greeting of 7 bytes"),
    "long": (hello("group", "sim:" + "x" * 3000, 9), "a greeting of 3"),
    "magic": (frame(1, b"", magic=0x50), "the first bytes are not orcalike's"),
    "version": (
        frame(1, b"", version=1),
        f"it speaks wire version 1, and this process {WIRE_VERSION}",
    ),
    "kind": (frame(2, b"x"), "a frame of kind 2 before the greeting"),
    "no msgpack": (frame(1, b"\xc1"), "a greeting that is not msgpack"),
    "extension": (frame(1, b"\xc7\x01\x05x"), "a greeting that is not msgpack"),
    "fields": (hello("group", "sim:x"), "a greeting with other fields"),
    "types": (hello("group", 7, 9), "a greeting with other fields"),
    "incarnation": (hello("group", "sim:x", -1), "a greeting with other fields"),
    "group": (hello("other", "sim:x", 9), "it speaks for another group than 'group'"),
}


@pytest.mark.parametrize("lie", GREETINGS)
def test_a_link_that_greets_wrongly_is_refused(lie: str) -> None:
    network = group()
    bad, why = GREETINGS[lie]
    link = non_member(network, "a")
    network.inject("a", link, bad)
    assert network.endpoints["a"].links[link] is None
    assert any(why in error for error in network["a"].errors), network["a"].errors
    assert network.endpoints["a"].stack.bottom.counters
    works(network, "a", "b", "c")


def test_a_claim_to_the_address_of_a_member_does_not_take_its_place() -> None:
    """A process that is started again at the same address is another member (H9)."""
    network = group()
    link = non_member(network, "a")
    network.inject("a", link, hello("group", "sim:b", 9))
    peer = network.endpoints["a"].stack.bottom.peer_at(link)
    assert peer is not None
    assert (peer.address, peer.incarnation, peer.position) == ("sim:b", 9, -1)
    works(network, "a", "b", "c")


def test_greeting_of_raises_nothing_but_protocol_errors() -> None:
    rng = Random(1)
    real = hello("group", "sim:x", 9)
    for _ in range(2_000):
        with_errors = mutate(real, rng)
        try:
            name, address, incarnation = greeting_of(with_errors)
        except ProtocolError:
            continue
        assert isinstance(name, str)
        assert isinstance(address, str)
        assert 0 <= incarnation < 1 << 64


NON_MEMBERS: dict[str, bytes] = {
    "join of no member": control("JOIN", [], {}),
    "join without options": control("JOIN", ["sim:x", 9, None, False]),
    "join with a rank too large": control("JOIN", ["sim:x", 9, 1 << 40, False], {}),
    "install of no view": control("INSTALL", [1, 2], b""),
    "install of a later view": control("INSTALL", [1, 4, 0, [["sim:x", 9, 0, False]], True], b""),
    "install with a member twice": control(
        "INSTALL", [1, 4, 0, [["sim:a", 1, 0, False], ["sim:a", 1, 0, False]], True], b""
    ),
    "leave": control("LEAVE"),
    "flush": control("FLUSH", 1),
    "propose": control("PROPOSE", [1, 4, 1, [], True], b""),
    "nothing known": control("NONSENSE", {"a": 1}),
    "no list": frame(4, CONTROL.to_bytes(8, "little") + msgpack.packb(7)),
    "no msgpack": frame(4, CONTROL.to_bytes(8, "little") + b"\xc1"),
    "no view": frame(4, b"1234567"),
    "a cast": data(b"\x02" + bytes(60), kind=2),
    "a view to come": data(bytes(60), view=9),
    "an unknown kind": frame(9, b""),
}


@pytest.mark.parametrize("what", NON_MEMBERS)
@pytest.mark.parametrize("target", ["a", "b"])
def test_a_non_member_harms_no_member(what: str, target: str) -> None:
    network = group()
    link = non_member(network, target)
    network.inject(target, link, hello("group", "sim:x", 9))
    network.inject(target, link, NON_MEMBERS[what])
    network.stabilize()
    assert [network[name].installed for name in "abc"] == [network["a"].installed] * 3
    works(network, "a", "b", "c")


def ordered(kind: int, place: int, counter: int, number: int) -> bytes:
    """TOTAL's header, and a body of XFER's."""
    head = bytes([kind, 0]) + place.to_bytes(2, "little") + bytes(4)
    return head + b"".join(n.to_bytes(8, "little") for n in (counter, number, 0, 0)) + b"\0x"


def of_member(network: ManualNetwork, layer: bytes, kind: int) -> bytes:
    """A message in the view that is installed, whatever it is."""
    view = network["a"].installed
    assert view is not None
    key = view.number << 24 | view.ballot
    return frame(kind, key.to_bytes(8, "little") + layer)


MEMBERS: dict[str, tuple[bytes, int, str]] = {
    "TOTAL: empty": (b"", 3, "only the sequencer gets"),
    "TOTAL: cut short": (b"\x01" + bytes(20), 3, "only the sequencer gets"),
    "TOTAL: no kind": (b"\x09" + bytes(60), 3, "only the sequencer gets"),
    "TOTAL: ordered by another": (ordered(2, 1, 2, 3), 2, "a cast that is not the sequencer's"),
    "TOTAL: expects too much": (ordered(3, 1, 0, 99), 3, "it knows of packet 99"),
    "XFER: no kind": (b"\x05\x09", 3, "a message of no kind"),
    "XFER: cut short": (b"\x05\x02", 3, "a message of no kind"),
}


@pytest.mark.parametrize("what", MEMBERS)
def test_what_a_member_sends_wrongly_is_reported(what: str) -> None:
    network = group()
    layer, kind, why = MEMBERS[what]
    network.inject("a", network.link("a", "b"), of_member(network, layer, kind))
    assert any(why in error for error in network["a"].errors), network["a"].errors
    works(network, "a", "c")


def test_a_sequencer_that_orders_what_was_not_sent_is_reported() -> None:
    network = group()
    total = network.endpoints["b"].stack.dump()["TOTAL"]
    made_up = of_member(network, ordered(2, 1, 2, int(str(total["next"]))), 2)
    network.inject("b", network.link("b", "a"), made_up)
    assert any("which it did not send" in error for error in network["b"].errors)


def test_a_cut_that_cannot_be_read_is_not_installed() -> None:
    for cut in (b"", b"\xc1", msgpack.packb([1]), msgpack.packb([1, 2, [[3]]])):
        network = ManualNetwork()
        network.form("a")
        network.add("b")
        network.join("b", "a")
        network.deliver("a", "b")
        me = network.endpoints["b"].stack.me.pack()
        install = control("INSTALL", [1, 2, 0, [me, ["sim:z", 99, 1, False]], True], cut)
        network.inject("b", network.link("b", "a"), install)
        assert network["b"].installed is None
        assert network["b"].errors
        network.join("b", "a")  # that link is closed, and the driver asks again
        network.stabilize()
        works(network, "a", "b")


# Frames of a real session, changed at random.


def session(stack: str) -> list[tuple[str, str, bytes]]:
    """Every frame of a session with joins, casts, state and a leave: (from, to, frame)."""
    seen: list[tuple[str, str, bytes]] = []

    class Tapped(ManualNetwork):
        def inject(self, target: str, link: int, frame: bytes) -> None:
            far = self.endpoints[target].links[link]
            seen.append(("" if far is None else far[0].name, target, frame))
            super().inject(target, link, frame)

    network = Tapped(stack)
    network.form("a b c")
    for name in "abcb":
        network.cast(name, name.encode() * 20)
    network.stabilize()
    network.leave("b")
    network.stabilize()
    return seen


def mutate(frame: bytes, rng: Random) -> bytes:
    """A frame with one to three faults, mostly behind the header of COM."""
    changed = bytearray(frame)
    for _ in range(rng.randint(1, 3)):
        start = rng.choice([0, 8, 16, 16, 16, 20])
        where = rng.randint(min(start, len(changed)), len(changed))
        match rng.randrange(5):
            case 0:
                changed[where : where + 1] = bytes([rng.randrange(256)])
            case 1:
                del changed[where:]
            case 2:
                del changed[where : where + rng.randint(1, 8)]
            case 3:
                changed[where:where] = rng.randbytes(rng.randint(1, 8))
            case 4:
                number = rng.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1])
                changed[where : where + 8] = number.to_bytes(8, "little")
    return bytes(changed)


def attack(stack: str, when: str, frames: list[Any], rng: Random) -> list[object]:
    """One group, and a few frames of the session that arrive once more, changed: what is reported."""
    network = unwatched(stack)
    network.form("a b c")
    if when == "joining":
        network.add("d")
        network.join("d", "b")
        for _ in range(rng.randrange(12)):
            one, other = rng.sample("abd", 2)
            network.deliver(one, other)
    for _ in range(10):
        source, target, real = rng.choice(frames)
        if source and network.endpoints[source].links:
            links = network.endpoints[target].links
            ends = [i for i, far in enumerate(links) if far is not None and far[0].name == source]
            if ends:
                network.inject(target, ends[-1], mutate(real, rng))
    network.cast("a", b"after")
    network.stabilize()
    for name in "abc":
        total: Any = network.endpoints[name].stack.focus("TOTAL")
        assert total.next <= total.accepted <= total.held, (name, total.dump())
    return [error for name in "abc" for error in network[name].errors]


@pytest.mark.parametrize("when", ["settled", "joining"])
@pytest.mark.parametrize("stack", [STACK, FULL])
def test_no_exception_escapes_from_garbled_frames(stack: str, when: str) -> None:
    frames = session(stack)
    reports: list[object] = []
    for number in range(120):
        try:
            reports += attack(stack, when, frames, Random(number))
        except Exception as error:
            error.add_note(f"attack({stack!r}, {when!r}, session({stack!r}), Random({number}))")
            raise
    assert {type(report) for report in reports} == {str}


@pytest.mark.parametrize("stack", [STACK, FULL])
def test_frames_that_are_cut_short(stack: str) -> None:
    """The shortest come last: COM closes a link on which its own header is cut."""
    for source, target, real in session(stack):
        if source:
            network = unwatched(stack)
            network.form("a b c")
            link = network.link(target, source)
            for size in range(len(real) - 1, -1, -1):
                network.inject(target, link, real[:size])
            assert network[target].errors
            assert network.endpoints[target].links[link] is None
