"""`join(at="unix:PATH")`: symmetric workers make one group, whichever of them comes first.

PATH is a directory, in which each member has its socket; a group that is not the default one has a
subdirectory of it. A process that joins takes the directory's
lock, joins through any socket at which a process listens, or makes the group if there is none, and
gives the lock back as soon as it is in. So two that start at once do not make two groups, and no
member is special: whichever ends, the sockets of the others remain.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
from pathlib import Path
from typing import TextIO

from orcalike.errors import JoinFailed, OrcalikeError
from orcalike.session.deadline import Deadline
from orcalike.transport.drivers.addresses import DATAGRAM_SUFFIX, UNIX_PATH_MAX
from orcalike.transport.drivers.driver import Waitable
from orcalike.transport.wire.digest import blake2b

LOCK = "lock"
TRY_AGAIN = 0.01
"""Seconds between two tries to get the lock."""

_SOCKET = re.compile("[0-9a-f]{16}")


class MeetingPlace:
    """A directory in which the members of one group have their sockets.

    That is PATH itself for the default group, and a subdirectory for the `group` of another name.
    """

    def __init__(self, at: str, group: str | None = None) -> None:
        scheme, _, path = at.partition(":")
        if scheme != "unix" or not path:
            raise ValueError(f'at={at!r}: a directory for the sockets of one group, "unix:PATH"')
        self.path = Path(path).absolute()
        if group is not None:
            self.path /= blake2b(group.encode(), digest_size=6).hexdigest()
        if len(os.fsencode(self.path)) + 1 + 16 > UNIX_PATH_MAX:
            raise ValueError(f"at={at!r}: the path is too long for sockets in it")

    def enter(self, holder: contextlib.ExitStack, deadline: Deadline) -> None:
        """Take the lock, which ends with `holder`, or this process; raises JoinFailed when the time is over.

        Raises OrcalikeError if there can be no such directory.
        """
        lock = holder.enter_context(self._lock_file())
        while not self._take(lock, deadline):
            Waitable().wait(TRY_AGAIN)  # where handlers of signals run

    async def enter_on_loop(self, holder: contextlib.ExitStack, deadline: Deadline) -> None:
        """The same, in a coroutine."""
        import asyncio  # not at the top: only coroutines need it, and it takes long

        lock = holder.enter_context(self._lock_file())
        while not self._take(lock, deadline):
            await asyncio.sleep(TRY_AGAIN)

    def _take(self, lock: TextIO, deadline: Deadline) -> bool:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if deadline.is_over:
                raise JoinFailed(f"another process is still joining at {self.path}") from None
            return False
        return True

    def _lock_file(self) -> TextIO:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            return (self.path / LOCK).open("w")
        except OSError as error:
            why = error.strerror or error
            raise OrcalikeError(f"cannot meet at unix:{self.path}: {why}") from None

    def new_address(self) -> str:
        """Where the member that makes the group listens."""
        return f"unix:{self.path / os.urandom(8).hex()}"

    def members(self) -> tuple[str, ...]:
        """The addresses at which processes listen; what others have left behind is removed."""
        found = sorted(path for path in self.path.iterdir() if _SOCKET.fullmatch(path.name))
        return tuple(f"unix:{path}" for path in found if _is_alive(path) or _remove(path))


def _is_alive(path: Path) -> bool:
    """Whether a process listens there; its datagram socket tells, which needs no answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(f"{path}{DATAGRAM_SUFFIX}")
        except OSError:
            return False
    return True


def _remove(path: Path) -> bool:
    for each in (path, path.with_name(path.name + DATAGRAM_SUFFIX)):
        each.unlink(missing_ok=True)
    return False
