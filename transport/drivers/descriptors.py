"""Descriptors that members of one host give each other: memory, and pipes that wake.

A *handle* names one to the others. It is opened by /proc, which the kernel allows to processes of the
same user alone.
"""

from __future__ import annotations

import os
import stat

from orcalike.transport.errors import ProtocolError

Handle = tuple[int, int]

ORDER, LANE, ALARM = range(3)
"""What a descriptor is for."""


class Descriptors:
    """Those of real processes: a handle is a process's number, and its own number of the descriptor."""

    def offer(self, incarnation: int, kind: int, fd: int) -> Handle:
        """The handle of a descriptor of the member with this incarnation."""
        return os.getpid(), fd

    def open(self, handle: Handle, flags: int) -> int:
        """A descriptor of this process; raises OSError, ProtocolError if it is not one for this.

        Nothing is waited for, and no device is opened.
        """
        pid, fd = handle
        flags |= os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        path = f"/proc/{pid}/fd/{fd}"
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise ProtocolError("a descriptor that is neither memory nor a pipe")
        return os.open(path, flags)


class DescriptorsOfOne(Descriptors):
    """Those of members that are simulated in one process: the handles of a run are the same each time."""

    def __init__(self) -> None:
        self._of: dict[Handle, int] = {}

    def offer(self, incarnation: int, kind: int, fd: int) -> Handle:
        """As above."""
        self._of[incarnation, kind] = fd
        return incarnation, kind

    def open(self, handle: Handle, flags: int) -> int:
        """As above."""
        fd = self._of.get(handle)
        if fd is None:
            raise ProtocolError("a descriptor that was not offered")
        return super().open((os.getpid(), fd), flags)


class Alarm:
    """A pipe that wakes a member: the others write to it. Its own end reads, and writes nothing."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def silence(self) -> bool:
        """Take what was written; whether there was anything."""
        if self.reader < 0:
            return False
        try:
            return bool(os.read(self.reader, 65_536))
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Close both ends."""
        for fd in (self.reader, self.writer):
            if fd >= 0:
                os.close(fd)
        self.reader = self.writer = -1

    def __del__(self) -> None:
        self.close()
