"""The pieces of the state that PACK gives: what has come of large packets, before those of the layers above."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

import msgpack
from orcalike.transport.errors import ProtocolError
from orcalike.transport.wire.control import unpack

STATE_PIECE = 65536
"""Bytes of what has come of a packet, in a piece of the state."""


class PackPieces:
    """The pieces of what has come of large packets, then those of the layers above."""

    def __init__(self, parts: list[tuple[int, bytes]], others: Iterator[bytes]) -> None:
        self._own = own_pieces(parts)
        self._others = others

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        piece = next(self._own, None)
        return next(self._others) if piece is None else piece

    def close(self) -> None:
        """No more is wanted."""
        close = getattr(self._others, "close", None)
        if close is not None:
            close()


class PiecesToCome:
    """The pieces of the layers above, if what comes before them in the order has to run first."""

    def __init__(self) -> None:
        self._pieces: Iterator[bytes] | None = None
        self._first: bytes | None = None
        self._failure: Exception | None = None
        self._closed = False

    def begin(self, give: Callable[[], Iterator[bytes]]) -> None:
        """`give()` gives them now: the first is taken at once, since state is as it is then."""
        if not self._closed:
            try:
                self._pieces = give()
                self._first = next(self._pieces, None)
            except Exception as error:  # noqa: BLE001 for whatever asks for a piece
                self._failure = error

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        if self._failure is not None:
            raise self._failure
        if self._pieces is None:
            return b""
        first, self._first = self._first, None
        return next(self._pieces) if first is None else first

    def close(self) -> None:
        """No more is wanted."""
        self._closed = True
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()


def own_pieces(parts: list[tuple[int, bytes]]) -> Iterator[bytes]:
    """(sender, size) of each, then their bytes."""
    yield msgpack.packb([(sender, len(data)) for sender, data in parts])
    for _, data in parts:
        for begin in range(0, len(data), STATE_PIECE):
            yield data[begin : begin + STATE_PIECE]


def unpack_sizes(piece: bytes, size_max: int) -> list[list[int]]:
    """What `own_pieces` gave first, no size above `size_max`; raises ProtocolError."""
    sizes = unpack(piece, "a state of PACK's", depth=2)
    if isinstance(sizes, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], int)
        and isinstance(pair[1], int)
        and 0 < pair[1] <= size_max
        for pair in sizes
    ):
        return sizes
    raise ProtocolError("state that does not begin with PACK's")
