"""Descriptors that members of one host give each other: memory, and pipes that wake.

A *handle* names one of a member's to the others. They open it in the directory of open files that its process
has passed to them, which the kernel allows to processes of the same user alone, in whatever container.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from orcalike.transport.errors import ProtocolError
from orcalike.transport.view import share_host

Handle = tuple[int, int]

ORDER, LANE, ALARM = range(3)
"""What a descriptor is for."""


class NotPassed(ProtocolError):
    """A process has not passed what others need of it: by a relay or an old kernel it never does, or it will when it can."""


class Descriptors:
    """Those of real processes: a handle is the number that the descriptor has there, and the number of its inode.

    By that a file is recognised that has got the descriptor's number since it was offered. `files_of` has the
    directory of a member's open files, by its incarnation; -1 if there is none.
    """

    def __init__(self, files_of: Callable[[int], int]) -> None:
        self._files_of = files_of

    def is_near(self, one: str, other: str) -> bool:
        """Whether endpoints at these addresses run on one host, as far as the addresses say."""
        return share_host(one, other)

    def offer(self, incarnation: int, kind: int, fd: int) -> Handle:
        """The handle of a descriptor of the member with this incarnation."""
        return fd, os.fstat(fd).st_ino

    def open(self, incarnation: int, handle: Handle, flags: int) -> int:
        """A descriptor of that member, for this process; raises OSError, ProtocolError if it is not one for this.

        Raises NotPassed if its process has passed nothing yet, FileNotFoundError or ProcessLookupError if it is not there
        any more. Nothing is waited for, and no device is opened.
        """
        files = self._files_of(incarnation)
        if files < 0:
            raise NotPassed("its process has not passed its open files")
        number, inode = handle
        return _checked(open_in(files, number, flags), inode)


class DescriptorsOfOne(Descriptors):
    """Those of members that are simulated in one process: the handles of a run are the same each time."""

    def __init__(self, is_near: Callable[[str, str], bool] = share_host) -> None:
        self._of: dict[tuple[int, int], tuple[int, int, int]] = {}
        """By incarnation and kind: the descriptor, its inode, and how many others there were before."""
        self._is_near = is_near

    def is_near(self, one: str, other: str) -> bool:
        """As above."""
        return self._is_near(one, other)

    def offer(self, incarnation: int, kind: int, fd: int) -> Handle:
        """As above."""
        inode = os.fstat(fd).st_ino
        _, known, count = self._of.get((incarnation, kind), (fd, inode, 0))
        count += known != inode
        self._of[incarnation, kind] = fd, inode, count
        return kind, count

    def open(self, incarnation: int, handle: Handle, flags: int) -> int:
        """As above."""
        kind, number = handle
        fd, inode, count = self._of.get((incarnation, kind), (-1, 0, number))
        if fd < 0:
            raise ProtocolError("a descriptor that was not offered")
        if count != number:
            raise FileNotFoundError(errno.ENOENT, "another file is offered by now")
        files = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY)
        try:
            return _checked(open_in(files, fd, flags), inode)
        finally:
            os.close(files)


SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC})
"""What the process or the system lacks, and may have later: descriptors, memory."""


def lasts(error: Exception) -> bool:
    """Whether what could not be opened, made or mapped is not worth another try."""
    if isinstance(error, NotPassed):
        return False
    return not (isinstance(error, OSError) and error.errno in SHORTAGES)


def open_in(files: int, number: int, flags: int) -> int:
    """Open a descriptor anew, by a directory of open files."""
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    mode = os.stat(str(number), dir_fd=files).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise ProtocolError("a descriptor that is neither memory nor a pipe")
    return os.open(str(number), flags, dir_fd=files)


def _checked(fd: int, inode: int) -> int:
    """A descriptor of the file with that inode; raises FileNotFoundError, and closes it, if another file has its number."""
    if os.fstat(fd).st_ino != inode:
        os.close(fd)
        raise FileNotFoundError(errno.ENOENT, "another file has its number")
    return fd


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
        both = self.reader, self.writer
        self.reader = self.writer = -1  # before another file can get the numbers
        for fd in both:
            if fd >= 0:
                os.close(fd)

    def __del__(self) -> None:
        self.close()
