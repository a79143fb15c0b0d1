"""The cipher of one direction of a connection: AES-256-GCM, whose nonces count the records."""

from typing import Self

def why_not_quick(*, anew: bool = False) -> str:
    """Why libsodium takes no part; "" where it seals and opens short records.

    It is found at the first call, and again with `anew`: ciphers that are made from then on go by that.
    """

class RecordCipher:
    """Seals the records of a direction, or opens them, under a key of 32 bytes; C alone uses it."""

    def __new__(cls, key: bytes) -> Self: ...
    quick: int
    def seal_bytes(self, plain: bytes) -> bytes:
        """The next record, for tests."""

    def open_bytes(self, record: bytes) -> bytes | None:
        """What the next record holds, for tests; None if it does not open."""
