"""A process that has no descriptors left, or few, or can pass none."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import socket
from collections.abc import Iterator
from typing import ClassVar

import pytest


def count_files() -> int:
    """How many files this process has open, without those of garbage, as other tests have left it."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@contextlib.contextmanager
def without_descriptors(free: int = 0) -> Iterator[None]:
    """This process has so many left."""
    gc.collect()  # what other tests have left must not make room later
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + free, limits[1]))
    taken = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(free):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for fd in taken:
            os.close(fd)


ADMIN, RESOURCE = 21, 24
"""CAP_SYS_ADMIN and CAP_SYS_RESOURCE: with either the kernel counts no descriptors that are under way."""
VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_: ClassVar = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def _capabilities() -> ctypes.Array[ctypes.c_uint32]:
    """This thread's: effective, permitted and inheritable, of the first 32 and of the others."""
    found = (ctypes.c_uint32 * 6)()
    assert not ctypes.CDLL(None).capget(ctypes.byref(_Header(VERSION_3, 0)), found)
    return found


def _be_capable(of: ctypes.Array[ctypes.c_uint32]) -> None:
    assert not ctypes.CDLL(None).capset(ctypes.byref(_Header(VERSION_3, 0)), of)


def _fill(sender: socket.socket, fd: int) -> None:
    for _ in range(6):
        socket.send_fds(sender, [b"x"], [fd] * 200)


@contextlib.contextmanager
def too_many_under_way() -> Iterator[None]:
    """This thread, and those that it starts, can pass no descriptor: too many of the user's are under way."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = _capabilities()
    less = _capabilities()
    less[0] &= ~(1 << ADMIN | 1 << RESOURCE)
    _be_capable(less)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits[0], 512), limits[1]))
    sender, receiver = socket.socketpair()
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="Too many references"):
            _fill(sender, null)
        yield
    finally:
        os.close(null)
        sender.close()
        receiver.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        _be_capable(before)
