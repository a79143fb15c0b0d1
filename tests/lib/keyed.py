"""A connection under a key, as one that is no member makes it: byte by byte, or as it should be.

What it seals and opens is by `cryptography`, whatever library the member uses.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from typing import Protocol
from unittest import mock

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from orcalike.transport.drivers.handshake import ANSWER_SIZE, Handshake
from orcalike.transport.drivers.key_ring import KeyRing, key_of
from orcalike.transport.drivers.noise import NONCE_SIZE
from orcalike.transport.drivers.record_cipher import why_not_quick

HEAD = 4
LIBRARIES = ("libsodium", "cryptography")
"""What members may seal short records by."""


@contextlib.contextmanager
def short_records_by(library: str) -> Iterator[str]:
    """Have members that connect meanwhile seal short records by one; says why they cannot, "" if they do."""
    hidden: dict[str, None] = {} if library == "libsodium" else {"nacl": None}
    with mock.patch.dict(sys.modules, hidden):
        lack = why_not_quick(anew=True)
    try:
        yield lack if library == "libsodium" else ""
    finally:
        why_not_quick(anew=True)


def ring_of(*secrets: bytes) -> KeyRing:
    """The keys, the first of which seals."""
    return KeyRing([key_of(secret) for secret in secrets])


class Socket(Protocol):
    """What the handshake needs of a connected socket."""

    def sendall(self, data: bytes, /) -> None:
        """Send all of it."""

    def recv(self, size: int, flags: int, /) -> bytes:
        """Bytes that came."""


class Sealer:
    """What one end sends and gets, when the handshake is over."""

    def __init__(self, handshake: Handshake) -> None:
        self._sends, self._comes = map(AESGCM, handshake.keys())
        self._sent = self._came = 0

    def seal(self, plain: bytes) -> bytes:
        """The next record."""
        sealed = self._sends.encrypt(self._sent.to_bytes(NONCE_SIZE, "big"), plain, None)
        self._sent += 1
        return len(sealed).to_bytes(HEAD, "little") + sealed

    def open(self, record: bytes) -> bytes:
        """What the next record of the other end holds; raises InvalidTag."""
        plain = self._comes.decrypt(self._came.to_bytes(NONCE_SIZE, "big"), record[HEAD:], None)
        self._came += 1
        return plain


def connect_sealed(sock: Socket, ring: KeyRing) -> Sealer:
    """Make the handshake on a connected socket that blocks, and have its ciphers."""
    handshake = Handshake(ring, connects=True)
    sock.sendall(handshake.opening())
    answer = sock.recv(ANSWER_SIZE, socket.MSG_WAITALL)
    handshake.check_begun(answer)
    handshake.receive(answer)
    return Sealer(handshake)
