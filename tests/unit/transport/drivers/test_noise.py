"""The exchange of keys, held against a vector that others published, and what a key keeps out."""

from __future__ import annotations

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from orcalike.transport.drivers.noise import EMPTY_SIZE, NONCE_SIZE, PUBLIC_SIZE, Exchange
from orcalike.transport.errors import AuthenticationError

# Noise_NNpsk0_25519_AESGCM_SHA256 of the vectors of cacophony, which other libraries are tested with.
PROLOGUE = bytes.fromhex("4a6f686e2047616c74")
SHARED = bytes.fromhex("54686973206973206d7920417573747269616e20706572737065637469766521")
PRIVATE = (
    "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
    "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
)
MESSAGES = [
    (
        "4c756477696720766f6e204d69736573",
        (
            "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79447c37a89fc17813788d30"
            "df2d59501d6066f5f8aecc3406bbd9829f2d24a531b1"
        ),
    ),
    (
        "4d757272617920526f746862617264",
        (
            "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088432f29d79368ef9de4e1ae"
            "7a362fb05bf0ad668e026bf5714554497b3a720461"
        ),
    ),
    ("462e20412e20486179656b", "7c01e898a6201f36aecee532e29cd0b7f8ffa29d3366ad0dce39a6"),
    ("4361726c204d656e676572", "a9ff535aace3db6a1da1a7fb00fe2de2622bb373abad9fb42c00e0"),
    (
        "4a65616e2d426170746973746520536179",
        "6cfc49a3e65472edc2d0152abe5ce950170a8a47c959f30bd48b5f0aacf29adbfd",
    ),
]


def published(*, connects: bool) -> Exchange:
    private = X25519PrivateKey.from_private_bytes(bytes.fromhex(PRIVATE[0 if connects else 1]))
    return Exchange(SHARED, PROLOGUE, connects=connects, private=private)


def test_the_published_vector() -> None:
    ends = published(connects=True), published(connects=False)
    for (payload, sealed), (writer, reader) in zip(MESSAGES[:2], (ends, ends[::-1]), strict=True):
        message = writer.write(bytes.fromhex(payload))
        assert message.hex() == sealed
        assert reader.read(message).hex() == payload
    ciphers = [[AESGCM(key) for key in end.split()] for end in ends]
    for turn, (payload, sealed) in enumerate(MESSAGES[2:]):
        sends, comes = ciphers[turn % 2][0], ciphers[1 - turn % 2][1]
        nonce = (turn // 2).to_bytes(NONCE_SIZE, "big")
        record = sends.encrypt(nonce, bytes.fromhex(payload), None)
        assert record.hex() == sealed
        assert comes.decrypt(nonce, record, None).hex() == payload


def exchange(first: bytes = SHARED, second: bytes = SHARED) -> tuple[Exchange, Exchange]:
    return Exchange(first, b"", connects=True), Exchange(second, b"", connects=False)


def test_each_exchange_ends_with_other_keys() -> None:
    sealed = set()
    for _ in range(2):
        connecting, accepting = exchange()
        accepting.read(connecting.write())
        connecting.read(accepting.write())
        for key, _ in (connecting.split(), accepting.split()):
            sealed.add(AESGCM(key).encrypt(bytes(NONCE_SIZE), b"the same", None))
    assert len(sealed) == 4


@pytest.mark.parametrize("place", range(EMPTY_SIZE))
@pytest.mark.parametrize("message", ["first", "second"])
def test_each_byte_counts(message: str, place: int) -> None:
    """One that is changed on the way ends the exchange."""

    def changed(sent: bytes) -> bytes:
        return sent[:place] + bytes([sent[place] ^ 0x40]) + sent[place + 1 :]

    connecting, accepting = exchange()
    opening = connecting.write()
    if message == "first":
        with pytest.raises(AuthenticationError):
            accepting.read(changed(opening))
    else:
        accepting.read(opening)
        with pytest.raises(AuthenticationError):
            connecting.read(changed(accepting.write()))


def test_another_key_reads_nothing() -> None:
    connecting, accepting = exchange(SHARED, bytes(32))
    with pytest.raises(AuthenticationError, match="has not proved the key"):
        accepting.read(connecting.write())


def test_what_both_know_must_be_the_same() -> None:
    with pytest.raises(AuthenticationError):
        Exchange(SHARED, b"b", connects=False).read(Exchange(SHARED, b"a", connects=True).write())


def test_a_recorded_first_message_opens_no_second_connection() -> None:
    """It is read, since it holds the key; what follows it cannot be made again."""
    connecting, accepting = exchange()
    recorded = connecting.write()
    accepting.read(recorded)
    connecting.read(accepting.write())
    record = AESGCM(connecting.split()[0]).encrypt(bytes(NONCE_SIZE), b"a greeting", None)
    later = Exchange(SHARED, b"", connects=False)
    later.read(recorded)
    later.write()
    with pytest.raises(InvalidTag):
        AESGCM(later.split()[1]).decrypt(bytes(NONCE_SIZE), record, None)


def test_a_point_of_low_order_is_refused() -> None:
    """It would make the agreed key known to all."""
    connecting, accepting = exchange()
    accepting.read(connecting.write())
    with pytest.raises(AuthenticationError, match="no public key"):
        connecting.read(bytes(PUBLIC_SIZE) + bytes(16))
