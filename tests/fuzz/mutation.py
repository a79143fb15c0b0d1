"""Faults in bytes: of a single bit, of a length, of a piece that is missing, twice there or foreign."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from tests.protocol.hostile import NUMBERS, Rng

TAGS = bytes((0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, *range(0xC0, 0xE0)))
"""The first bytes of msgpack's values."""


def mutated(data: bytes, others: Sequence[bytes], rng: Rng) -> bytes:
    """The data with one to four faults; pieces come from the `others`."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(changed) + 1)
        end = min(len(changed), at + rng.choice((1, 2, 4, 8, 40)))
        match rng.randrange(9):
            case 0 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                changed[at : at + 1] = rng.randbytes(1)
            case 2:
                changed[at : at + 1] = bytes([rng.choice(TAGS)])
            case 3:
                del changed[at:]
            case 4:
                del changed[at:end]
            case 5:
                changed[at:at] = changed[at:end]
            case 6:
                size = rng.choice((1, 2, 4, 8))
                number = rng.choice(NUMBERS) % (1 << 8 * size)
                changed[at : at + size] = number.to_bytes(size, rng.choice(("big", "little")))
            case 7:
                other = rng.choice(others)
                start = rng.randrange(len(other) + 1)
                changed[at:end] = other[start : start + 40]
            case _:
                changed[at:at] = rng.randbytes(rng.randrange(1, 9))
    return bytes(changed)


def exactly(data: bytes) -> memoryview:
    """The bytes in an allocation of just their size: a sanitizer sees each read beyond it."""
    return memoryview((ctypes.c_ubyte * len(data)).from_buffer_copy(data)).cast("B")


def cut(data: bytes, rng: Rng) -> list[bytes]:
    """The data in pieces of any size."""
    parts, at = [], 0
    while at < len(data):
        size = rng.choice((1, 2, 3, 7, 64, 4096, 70_000))
        parts.append(data[at : at + size])
        at += size
    return parts
