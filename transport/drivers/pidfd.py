"""Peers' processes, watched until they end: how a death becomes certain (H13).

Each end of a Unix socket passes a pidfd of its own process to the other, along with its greeting.
A pidfd is the kernel's own name for one process: its number cannot come to mean another, it is
readable when that process has ended and never before. It is believed only from that process itself:
with the first bytes of a connection the kernel says which process sent them (SO_PASSCRED), and an
incarnation that is known by its process greets from no other one. A connection that claims otherwise
is a lie, and ends. Nothing else about a connection is as certain:

- SO_PEERCRED names, to the end that connected, the process that called listen(2). That is the launcher if
  it made the socket for a rank; the rank's life says nothing of the launcher's, nor the other way.
- Behind a relay (an SSH tunnel, say) the kernel knows the relay's process alone. A relay passes
  bytes on and no descriptors, so the greeting comes without one, and nothing is certain; one that
  did pass them on would pass the member's.
- A number that the peer states means something in its own process namespace only.

If there is no pidfd (by TCP, of an old kernel) a death is suspected, never certain.

The same descriptor says whether a process that is silent runs, as far as the kernel knows: one that
waits for a processor does, one that a signal or a debugger has stopped does not.
"""

from __future__ import annotations

import os
import select

from orcalike.transport.drivers.descriptors import lasts
from orcalike.transport.stack import Stack

RUNNING = frozenset("RSD")
"""Of the states in /proc/PID/stat: it runs or waits; the others are stopped, or at their end."""

EXITING = 0x4
"""Of the flags in /proc/PID/stat (PF_EXITING): set before the kernel closes a process's connections, which others see first."""


WAITED_FOR = -1
"""In the place of a process's number: it has ended, and was waited for."""


class OwnProcess:
    """What this process passes to its peers: a pidfd of it, and the directory of its open files; -1 for what there is not.

    That directory is the kernel's own name for it, too: it leads to the same process from every process namespace.
    What a peer opens in it is up to the kernel, which allows that to processes of the same user alone.
    Raises OSError if there is no room for them now, which says nothing of later.
    """

    __slots__ = ("fd", "files")

    def __init__(self) -> None:
        self.fd = self.files = -1
        self.fd = own()
        try:
            self.files = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            if not lasts(error):
                raise

    def __del__(self) -> None:
        for fd in (self.fd, self.files):
            if fd >= 0:
                os.close(fd)


class Process:
    """The process of a peer of one stack: a pidfd and its number, and which peer it is.

    `files` is the directory of its open files, or -1; `slot` is where the pidfd is watched, -1 if it is not.
    """

    __slots__ = ("fd", "files", "incarnation", "pid", "slot", "stack")

    def __init__(
        self, fd: int, stack: Stack, incarnation: int, pid: int = 0, files: int = -1
    ) -> None:
        self.fd = fd
        self.files = files
        self.pid = pid
        self.stack = stack
        self.incarnation = incarnation
        self.slot = -1

    def has_ended(self) -> bool:
        """Whether the process has ended."""
        poller = select.poll()
        poller.register(self.fd, select.POLLIN)
        return any(events & select.POLLIN for _, events in poller.poll(0))

    def runs(self) -> bool:
        """Whether the kernel says that the process lives and is not stopped; False if unknown."""
        try:
            state, _ = self._look()
        except (OSError, ValueError, IndexError):
            return False  # it has ended, or is in a process namespace that is not seen from here
        return state in RUNNING and not self.has_ended()  # so the number was its own till now

    def is_ending(self) -> bool:
        """Whether the kernel says that the process ends, or has ended; False if unknown.

        So it says of one, too, whose first thread has ended while others go on: that may last.
        """
        if self.has_ended():
            return True
        try:
            _, flags = self._look()
        except (OSError, ValueError, IndexError):
            return self.has_ended()
        return bool(flags & EXITING)

    def _look(self) -> tuple[str, int]:
        """Its state and its flags; raises OSError, ValueError or IndexError if they are not seen from here."""
        fields = _text_of(f"/proc/{pid_of(self.fd)}/stat").rpartition(")")[2].split()
        return fields[0], int(fields[6])

    def close(self) -> None:
        """Watch no more."""
        os.close(self.fd)
        if self.files >= 0:
            os.close(self.files)


def own() -> int:
    """A pidfd of this process; -1 if the system gives none. Raises OSError if there is no room for it now."""
    try:
        return os.pidfd_open(os.getpid())
    except OSError as error:
        if not lasts(error):
            raise
        return -1


def are_numbers_known(own_fd: int) -> bool:
    """Whether the numbers in /proc are those that the kernel states elsewhere, as of one's own; raises as `pid_of` does."""
    return pid_of(own_fd) == os.getpid()


def is_pidfd(fd: int) -> bool:
    """Whether a descriptor that a peer passed is one of a process."""
    return pid_of(fd) is not None


def pid_of(fd: int) -> int | None:
    """The number of a pidfd's process: WAITED_FOR once it was, 0 if it has none here.

    None if the descriptor is no pidfd. Raises OSError if there is no descriptor to look now.
    """
    try:
        lines = _text_of(f"/proc/self/fdinfo/{fd}").splitlines()
    except OSError as error:
        if not lasts(error):
            raise
        return None
    numbers = [int(line.split()[1]) for line in lines if line.startswith("Pid:")]
    return numbers[0] if numbers else None


def is_free(number: int) -> bool:
    """Whether no process has this number: the one that had it has ended, and was waited for."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return number > 0
    except OSError:
        pass
    return False


def _text_of(path: str) -> str:
    # The name of a process may be any bytes, and is cut in the middle of a character.
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
