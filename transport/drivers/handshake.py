"""The handshake of a connection under a key: nothing of a peer is read before it (S6, S13).

The end that connects sends which key it uses, and the first message of `noise`; the other answers
with the second. What follows is sealed under keys of this connection (`sealed_channel.pyx`). The end
that accepts has the proof with the first record, since a first message can be one that was recorded.
"""

from __future__ import annotations

from orcalike.transport.drivers.key_ring import ID_SIZE, KeyRing
from orcalike.transport.drivers.noise import EMPTY_SIZE, Exchange
from orcalike.transport.errors import AuthenticationError

MAGIC = b"OLN1"
"""What each end sends first. As a frame's length it would be too large for any version."""

OPENING_SIZE = len(MAGIC) + ID_SIZE + EMPTY_SIZE
ANSWER_SIZE = len(MAGIC) + EMPTY_SIZE


class Handshake:
    """One end's part, on one connection."""

    def __init__(self, ring: KeyRing, *, connects: bool) -> None:
        self.wanted = ANSWER_SIZE if connects else OPENING_SIZE
        """The bytes of the other end's message."""
        self._ring = ring
        self._exchange: Exchange | None = None
        self._connects = connects

    def opening(self) -> bytes:
        """What the end that connects sends first."""
        key = self._ring.first()
        head = MAGIC + key.id
        self._exchange = Exchange(key.secret, head, connects=True)
        return head + self._exchange.write()

    def check_begun(self, begun: bytes) -> None:
        """Raise AuthenticationError if a message that begins so is none of a handshake."""
        if begun[: len(MAGIC)] != MAGIC[: len(begun)]:
            raise AuthenticationError("it speaks without the key of this group")

    def receive(self, message: bytes) -> bytes:
        """Take the other end's message, whole; what is to be sent then. Raises AuthenticationError."""
        if self._exchange is not None:
            self._exchange.read(message[len(MAGIC) :])
            return b""
        head = message[: len(MAGIC) + ID_SIZE]
        key = self._ring.find(head[len(MAGIC) :])
        if key is None:
            raise AuthenticationError("it has another key than this group")
        self._exchange = Exchange(key.secret, head, connects=False)
        self._exchange.read(message[len(head) :])
        return MAGIC + self._exchange.write()

    def keys(self) -> tuple[bytes, bytes]:
        """Of what is sent, and of what comes; the other end's message was taken."""
        assert self._exchange is not None
        return self._exchange.split()
