"""Descriptors that the launcher gives to one process, by variables that others inherit.

A variable says `FD:PID:DEVICE:INODE`. What a rank starts has another PID. A program that a rank becomes by exec(2) has its
PID, and may have any other file under that number.
"""

from __future__ import annotations

import contextlib
import errno
import os


def own_descriptor(named: str) -> int | None:
    """The descriptor that is named so; None if it is not this process's. Raises OSError if it is no more that file."""
    words = _parse(named)
    if words is None or words[1] != os.getpid():
        return None
    if (descriptor := held_descriptor(named)) is not None:
        return descriptor
    raise OSError(
        errno.EBADF,
        "it was closed, as if this program was started by exec in the place of the rank's",
    )


def held_descriptor(named: str) -> int | None:
    """The descriptor that is named so, whichever process it was given to; None if this one does not have that file."""
    if (words := _parse(named)) is None:
        return None
    descriptor, _, device, inode = words
    with contextlib.suppress(OSError, OverflowError):
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) == (device, inode):
            return descriptor
    return None


def _parse(named: str) -> list[int] | None:
    words = named.split(":")
    if len(words) != 4 or not all(word.isascii() and word.isdecimal() for word in words):
        return None
    return [int(word) for word in words]
