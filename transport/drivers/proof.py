"""The proof of a group's key on a TCP connection: nothing of a peer is read before it.

Both ends draw a nonce and send it first. Then each sends, before its greeting, an HMAC-SHA256 under
the key over both nonces and the greeting, which names the group and the incarnation; the end that
was connected to proves itself second, over both greetings. A recorded proof is worth nothing, since
the nonces are new; an end's own proof sent back to it is none, since the two ends' differ.

This keeps out processes that lack the key, on an interface that cannot be listened to by them. It does
not encrypt, and frames after the greeting carry no proof.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from orcalike.transport.errors import AuthenticationError

MAGIC = b"OLK1"
"""What each end sends first. As a frame's length it would be too large for any version."""

KEY_SIZE = 32
NONCE_SIZE = 32
TAG_SIZE = hashlib.sha256().digest_size
CHALLENGE_SIZE = len(MAGIC) + NONCE_SIZE


class Proof:
    """One end's part, on one connection."""

    def __init__(self, key: bytes, *, connects: bool) -> None:
        self.connects = connects
        """Whether this end made the connection."""
        self.met = False
        """Whether the other end's nonce is here."""
        self.verified = False
        """Whether the other end has proved the key."""
        self.sealed = False
        """Whether this end's own greeting has gone."""
        self._key = key
        self._own = secrets.token_bytes(NONCE_SIZE)
        self._nonces = b""
        self._greeting = b""

    def challenge(self) -> bytes:
        """What this end sends first."""
        return MAGIC + self._own

    def meet(self, challenge: bytes) -> None:
        """What the other end has sent first; raises AuthenticationError if it is no challenge."""
        if challenge[: len(MAGIC)] != MAGIC:
            raise AuthenticationError("it speaks without the key that this group has")
        theirs = challenge[len(MAGIC) :]
        self._nonces = self._own + theirs if self.connects else theirs + self._own
        self.met = True

    def seal(self, greeting: bytes) -> bytes:
        """The tag that goes before this end's greeting."""
        self.sealed = True
        tag = self._tag(self.connects, greeting)
        self._greeting = greeting
        return tag

    def verify(self, tag: bytes, greeting: bytes) -> None:
        """Check the other end's tag; raises AuthenticationError."""
        if not hmac.compare_digest(tag, self._tag(not self.connects, greeting)):
            raise AuthenticationError("it has not proved the key of this group")
        self.verified = True
        self._greeting = greeting

    def _tag(self, connects: bool, greeting: bytes) -> bytes:
        before = b"" if connects else len(self._greeting).to_bytes(4, "big") + self._greeting
        label = b"orcalike connects" if connects else b"orcalike accepts "
        return hmac.digest(self._key, label + self._nonces + before + greeting, "sha256")
