"""Noise_NNpsk0_25519_AESGCM_SHA256: two messages, after which both ends have two fresh keys.

After the Noise Protocol Framework, revision 34: sections 5 (processing), 7.4 (the pattern NN), 9 (a
shared key mixed in first) and 12 (functions). The one that connects sends `psk, e`, the other answers
`e, ee`. An end without the shared key can neither make nor read a message; a recording does not open
when the shared key is lost later, since the keys come from an exchange that both ends forget.
"""

from __future__ import annotations

import hashlib
import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from orcalike.transport.errors import NOT_PROVED, AuthenticationError

NAME = b"Noise_NNpsk0_25519_AESGCM_SHA256"
PUBLIC_SIZE = 32
TAG_SIZE = 16
NONCE_SIZE = 12
EMPTY_SIZE = PUBLIC_SIZE + TAG_SIZE
"""The bytes of a message without a payload."""


class Exchange:
    """One end's part of it; `write` and `read` alternate, and `split` ends it."""

    def __init__(
        self,
        shared: bytes,
        prologue: bytes,
        *,
        connects: bool,
        private: X25519PrivateKey | None = None,
    ) -> None:
        """`prologue` is what both ends know anyway: it must be the same at both."""
        self._connects = connects
        self._private = private or X25519PrivateKey.generate()
        self._theirs: bytes | None = None
        self._key, self._number = b"", 0
        self._chaining = self._hash = NAME
        self._mix_hash(prologue)
        self._chaining, mixed, self._key = _derive(self._chaining, shared, 3)
        self._mix_hash(mixed)

    def write(self, payload: bytes = b"") -> bytes:
        """This end's message."""
        own = self._private.public_key().public_bytes_raw()
        self._mix_public(own)
        if self._theirs is not None:
            self._agree()
        sealed = AESGCM(self._key).encrypt(self._nonce(), payload, self._hash)
        self._mix_hash(sealed)
        return own + sealed

    def read(self, message: bytes) -> bytes:
        """The payload of the other end's message; raises AuthenticationError."""
        wrote = self._connects
        self._theirs = message[:PUBLIC_SIZE]
        self._mix_public(self._theirs)
        if wrote:
            self._agree()
        sealed = message[PUBLIC_SIZE:]
        try:
            payload = AESGCM(self._key).decrypt(self._nonce(), sealed, self._hash)
        except InvalidTag:
            raise AuthenticationError(NOT_PROVED) from None
        self._mix_hash(sealed)
        return payload

    def split(self) -> tuple[bytes, bytes]:
        """The keys of what this end sends, and of what it gets."""
        connecting, accepting = _derive(self._chaining, b"", 2)
        return (connecting, accepting) if self._connects else (accepting, connecting)

    def _mix_hash(self, data: bytes) -> None:
        self._hash = hashlib.sha256(self._hash + data).digest()

    def _mix_key(self, material: bytes) -> None:
        self._chaining, self._key = _derive(self._chaining, material, 2)
        self._number = 0

    def _mix_public(self, public: bytes) -> None:
        self._mix_hash(public)
        self._mix_key(public)  # since there is a shared key (section 9.2)

    def _agree(self) -> None:
        assert self._theirs is not None
        try:
            agreed = self._private.exchange(X25519PublicKey.from_public_bytes(self._theirs))
        except ValueError:  # a point of low order, or too few bytes
            raise AuthenticationError("it has sent no public key") from None
        self._mix_key(agreed)

    def _nonce(self) -> bytes:
        number, self._number = self._number, self._number + 1
        return number.to_bytes(NONCE_SIZE, "big")


def _derive(chaining: bytes, material: bytes, count: int) -> list[bytes]:
    """HKDF (section 4.3)."""
    secret = hmac.digest(chaining, material, "sha256")
    derived = [b""]
    for number in range(1, count + 1):
        derived.append(hmac.digest(secret, derived[-1] + bytes([number]), "sha256"))
    return derived[1:]
