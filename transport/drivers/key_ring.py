"""The keys of a cluster: the first one seals, each of them opens (S3).

So a key is changed while groups go on: the new one is added everywhere, then put first everywhere, and
the old one removed. Connections stay as they were made; each handshake takes the ring as it is then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from orcalike.transport.wire.digest import blake2b

KEY_SIZE = 32
ID_SIZE = 8
KEYS_MAX = 16


class Key(NamedTuple):
    """A shared secret, and the public name that says which one is meant."""

    id: bytes
    secret: bytes

    @property
    def of_beats(self) -> bytes:
        """The key of the heartbeats' tags."""
        return _digest(self.secret, 16, b"orcalike beats")

    def __repr__(self) -> str:
        return f"Key({self.id.hex()})"


def key_of(secret: bytes) -> Key:
    """The key that these bytes are; raises ValueError if they are not 32."""
    if len(secret) != KEY_SIZE:
        raise ValueError(f"a key has {KEY_SIZE} bytes, not {len(secret)}")
    return Key(_digest(secret, ID_SIZE, b"orcalike key id"), secret)


def _digest(secret: bytes, size: int, purpose: bytes) -> bytes:
    return blake2b(digest_size=size, key=secret, person=purpose).digest()


class KeyRing:
    """`KeyRing(keys)`; `reread()` gives other ones where they have changed, else None."""

    def __init__(
        self, keys: Sequence[Key], reread: Callable[[], Sequence[Key] | None] = lambda: None
    ) -> None:
        self._keys = tuple(keys)
        self._reread = reread

    def all(self) -> tuple[Key, ...]:
        """Those on the ring now, the one that seals first."""
        return self._now()

    def first(self) -> Key:
        """The one that seals, as things are now."""
        return self._now()[0]

    def find(self, id: bytes) -> Key | None:
        """The one of that name, if it is on the ring now."""
        return next((key for key in self._now() if key.id == id), None)

    def _now(self) -> tuple[Key, ...]:
        changed = self._reread()
        if changed:
            self._keys = tuple(changed)
        return self._keys

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(key.id.hex() for key in self._keys)})"
