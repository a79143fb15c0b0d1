"""The handshake's messages: which key is meant, and how a ring of keys is changed."""

from __future__ import annotations

import pytest

from orcalike.transport.drivers.handshake import ANSWER_SIZE, MAGIC, OPENING_SIZE, Handshake
from orcalike.transport.drivers.key_ring import Key, KeyRing, key_of
from orcalike.transport.errors import AuthenticationError
from tests.lib.keyed import Sealer, ring_of

OLD, NEW, OTHER = bytes(range(32)), bytes(range(1, 33)), bytes(32)


def shake(connecting: KeyRing, accepting: KeyRing) -> tuple[Sealer, Sealer]:
    one, other = Handshake(connecting, connects=True), Handshake(accepting, connects=False)
    opening = one.opening()
    other.check_begun(opening)
    answer = other.receive(opening)
    one.check_begun(answer)
    assert one.receive(answer) == b""
    assert (len(opening), len(answer)) == (other.wanted, one.wanted) == (OPENING_SIZE, ANSWER_SIZE)
    return Sealer(one), Sealer(other)


def test_both_ends_seal_for_each_other() -> None:
    one, other = shake(ring_of(OLD), ring_of(OLD))
    assert other.open(one.seal(b"there")) == b"there"
    assert one.open(other.seal(b"back")) == b"back"
    assert other.open(one.seal(b"again")) == b"again"


@pytest.mark.parametrize(
    ("connecting", "accepting"),
    [
        ((OLD,), (OLD, NEW)),
        ((OLD, NEW), (NEW, OLD)),
        ((NEW, OLD), (OLD, NEW)),
        ((NEW, OLD), (NEW,)),
    ],
)
def test_a_key_is_changed_in_steps(
    connecting: tuple[bytes, ...], accepting: tuple[bytes, ...]
) -> None:
    """At each step members that have made it, and members that have not, reach each other."""
    for first, second in ((connecting, accepting), (accepting, connecting)):
        one, other = shake(ring_of(*first), ring_of(*second))
        assert other.open(one.seal(b"there")) == b"there"


def test_a_removed_key_opens_no_more() -> None:
    with pytest.raises(AuthenticationError, match="another key"):
        shake(ring_of(OLD), ring_of(NEW))


def test_another_key_under_the_same_name_is_found_out() -> None:
    lying = KeyRing([Key(key_of(OLD).id, OTHER)])
    with pytest.raises(AuthenticationError, match="has not proved the key"):
        shake(lying, ring_of(OLD))


def test_the_name_of_the_key_is_part_of_what_is_proved() -> None:
    """A name that was changed on the way ends it, if both keys are on the ring."""
    one, other = (
        Handshake(ring_of(OLD), connects=True),
        Handshake(ring_of(OLD, NEW), connects=False),
    )
    opening = one.opening()
    opening = MAGIC + key_of(NEW).id + opening[len(MAGIC) + 8 :]
    with pytest.raises(AuthenticationError):
        other.receive(opening)


def test_a_ring_is_read_anew() -> None:
    keys = [key_of(OLD)]
    changed: list[Key] | None = None
    ring = KeyRing(keys, lambda: changed)
    assert ring.first() == key_of(OLD)
    changed = [key_of(NEW), key_of(OLD)]
    assert ring.first() == key_of(NEW)
    changed = None
    assert ring.find(key_of(OLD).id) == key_of(OLD)
    assert ring.find(key_of(OTHER).id) is None


def test_no_text_shows_a_key() -> None:
    for shown in (key_of(OLD), ring_of(OLD, NEW)):
        assert OLD.hex() not in repr(shown)
        assert repr(OLD) not in repr(shown)
        assert key_of(OLD).id.hex() in repr(shown)


@pytest.mark.parametrize("begun", [b"O", b"OLN", MAGIC, MAGIC + bytes(10)])
def test_what_may_become_a_message(begun: bytes) -> None:
    Handshake(ring_of(OLD), connects=False).check_begun(begun)


@pytest.mark.parametrize("begun", [b"G", b"OLK1", b"\x20\0\0\0", bytes(60)])
def test_what_is_none_is_refused_at_once(begun: bytes) -> None:
    with pytest.raises(AuthenticationError, match="without the key"):
        Handshake(ring_of(OLD), connects=False).check_begun(begun)


def test_the_first_bytes_are_no_frame() -> None:
    assert int.from_bytes(MAGIC, "little") > 1 << 28
