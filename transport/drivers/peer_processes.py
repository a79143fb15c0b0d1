"""The table of the peers' processes: by incarnation, each watched until it ends (H13).

It says which greetings are lies: an incarnation that is known by its process greets from no other.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Collection

from orcalike.transport.drivers import pidfd
from orcalike.transport.drivers.epoll_set import EpollSet
from orcalike.transport.drivers.pidfd import OwnProcess, Process
from orcalike.transport.errors import OrcalikeError, ProtocolError
from orcalike.transport.layers.com import greeting_of
from orcalike.transport.layers.mbrship import Mbrship
from orcalike.transport.stack import Stack
from orcalike.transport.view import View, share_host

LATE_MAX = 64
"""Processes that are watched on when their links are gone, and incarnations that are known to have ended."""


def is_elsewhere(stack: Stack, incarnation: int) -> bool:
    """Whether a member of the stack's view is on another host, as far as addresses say."""
    membership = stack.focus("MBRSHIP")
    view: object = membership.view if isinstance(membership, Mbrship) else None
    if not isinstance(view, View) or (position := view.position(incarnation)) < 0:
        return False
    return not share_host(stack.me.address, view.members[position].address)


class PeerProcesses:
    """The processes of peers that are watched in `epoll`, and the last ones that have ended.

    `numbers_known` says whether processes can be compared by their numbers; None until it was found out.
    """

    def __init__(self, epoll: EpollSet) -> None:
        self.numbers_known: bool | None = None
        self._epoll = epoll
        self._of: dict[int, Process] = {}
        self._ended: deque[int] = deque(maxlen=LATE_MAX)
        self._forgotten: deque[int] = deque(maxlen=LATE_MAX)

    def __len__(self) -> int:
        return len(self._of)

    def find_out(self, own: OwnProcess) -> None:
        """Find out `numbers_known`, if it is not known; raises OSError if there is no room to look now."""
        if self.numbers_known is None:
            self.numbers_known = pidfd.are_numbers_known(own.fd)

    def lie_of(self, greeting: bytes, pid: int, uid: int, passed: int) -> str | None:
        """Why the process that sent `greeting` is not the one that it says, or cannot be known now; None if it seems to be.

        `pid` and `uid` are those of the sender, as the kernel says; `passed` is the descriptor that came
        along, or -1.
        """
        if uid not in (-1, os.getuid()):
            return f"a process of user {uid}"
        try:
            _, _, incarnation = greeting_of(greeting)
        except ProtocolError:
            return None  # it is refused for that
        if incarnation in self._ended:
            return "it greets as a member whose process has ended"
        if not self.numbers_known:
            return None
        known = self._of.get(incarnation)
        if known is not None and known.pid != pid:
            return f"process {pid} greets as a member that is process {known.pid}"
        try:
            number = pidfd.pid_of(passed) if passed >= 0 else None
        except OSError as error:
            return error.strerror  # made anew, the connection brings it again
        if number is not None and number >= 0 and number != pid:
            return f"process {pid} greets with a descriptor of process {number}"
        return None

    def watch(self, process: Process, address: str) -> str | None:
        """Watch the process of the peer at an address until it ends; it is closed where it is doubtful, or known already.

        So it is if the address is of another host: such a peer grants this one no lease, wherever it runs.
        Returns why it cannot be known now whose process it is, so that its connection is to be made anew; else None.
        """
        try:
            number = pidfd.pid_of(process.fd)
        except OSError as error:
            process.close()
            return error.strerror
        doubtful = number is None or (self.numbers_known and number != process.pid)
        if number == pidfd.WAITED_FOR and self.numbers_known:
            doubtful = not pidfd.is_free(process.pid)  # the process that greeted has ended, too
        far = not share_host(process.stack.me.address, address)
        if process.incarnation in self._of or doubtful or far:
            process.close()
            return None
        try:
            process.slot = self._epoll.add(process.fd, process)
        except (OSError, OrcalikeError):
            process.close()  # without room its death is suspected, never certain
            return None
        self._of[process.incarnation] = process
        return None

    def forget(self, process: Process) -> None:
        """Watch a process no more."""
        self._epoll.remove(process.fd, process.slot)
        process.close()
        del self._of[process.incarnation]
        self._forgotten.append(process.incarnation)

    def forget_late(self, linked: Collection[int]) -> None:
        """Of those whose links are gone watch only the last ones on; `linked` are the incarnations of the others."""
        late = [process for incarnation, process in self._of.items() if incarnation not in linked]
        for process in late[:-LATE_MAX]:
            self.forget(process)

    def ended(self, incarnation: int) -> None:
        """A process has ended, and what it had sent has been read: no greeting of its member is believed."""
        self._ended.append(incarnation)

    def files_of(self, incarnation: int) -> int:
        """The directory of the open files of this peer's process; -1 if it has passed none.

        Raises ProcessLookupError for one that is watched no more, as one that has ended.
        """
        process = self._of.get(incarnation)
        if process is None and incarnation in self._forgotten:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        return -1 if process is None else process.files

    def runs(self, incarnation: int) -> bool:
        """Whether the kernel says that the process of this peer runs; False if unknown."""
        process = self._of.get(incarnation)
        return process is not None and process.runs()

    def is_ending(self, incarnation: int) -> bool:
        """Whether the kernel says that the process of this peer is at its end, which will be seen; False if unknown."""
        process = self._of.get(incarnation)
        return process is not None and process.is_ending()

    def close(self) -> None:
        """Close every descriptor; the set is not used any more."""
        for process in self._of.values():
            process.close()
        self._of.clear()
