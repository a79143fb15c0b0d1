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


LIMIT = 512
"""So many descriptors of one user's may be under way at the most."""


@contextlib.contextmanager
def under_way() -> Iterator[None]:
    """More than that are under way, all of this process: those of others may be received meanwhile."""
    sender, receiver = socket.socketpair()
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        for _ in range(3):
            socket.send_fds(sender, [b"x"], [null] * 200)
        yield
    finally:
        os.close(null)
        sender.close()
        receiver.close()


@contextlib.contextmanager
def too_many_under_way() -> Iterator[None]:
    """This thread, and those that it starts, can pass no descriptor: too many of the user's are under way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = _capabilities()
    less = _capabilities()
    less[0] &= ~(1 << ADMIN | 1 << RESOURCE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with under_way():
            _be_capable(less)
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, LIMIT), hard))
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        _be_capable(before)
