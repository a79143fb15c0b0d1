"""Descriptors that never block the launcher, of files that it shares with other processes."""

from __future__ import annotations

import os
import stat

#: The other side of all terminals of a pseudo terminal driver: to open it makes a new terminal.
_PTMX = os.makedev(5, 2)


def reopen(descriptor: int, access: int) -> int:
    """A new descriptor of the same terminal or pipe that does not block; the same one if there can be none.

    `access` is O_RDONLY or O_WRONLY. O_NONBLOCK is a property of the open file, which the user's shell and other
    programs share: they would fail if it were set there. So the file is opened once more.
    """
    found = os.fstat(descriptor)
    is_terminal = os.isatty(descriptor) and found.st_rdev != _PTMX
    if not is_terminal and not stat.S_ISFIFO(found.st_mode):
        return descriptor
    flags = access | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        return os.open(f"/proc/self/fd/{descriptor}", flags)
    except OSError:  # of another user, as after `su`; or a pipe that no process reads
        return descriptor
