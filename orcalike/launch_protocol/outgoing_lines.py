"""What a process reports to its launcher: whole lines, of which none is lost while the launcher does not read.

The line does not block. What it has no room for waits, and a thread writes it when there is room: there is one only
then.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

from orcalike.launch_protocol.control_lines import (
    LINE_MAX,
    Described,
    Hosts,
    Joining,
    Leaving,
    ToLauncher,
    encode,
)
from orcalike.transport.drivers.deferral import OwnThread

WAITING_MAX = 4096
"""Lines: the launcher does not know more incarnations of a process."""


class OutgoingLines:
    """The reports of this process by the descriptor that `descriptor()` gives, None if it has none any more.

    Of how a group stands the last report waits, and of how many processes this one hosts; of members that join or leave each. The answer to a question does not
    wait: it is of no use later.
    """

    def __init__(self, descriptor: Callable[[], int | None]) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._waiting: dict[object, bytes] = {}
        self._rest = b""
        """Of a line that was taken in part."""
        self._has_thread = False

    def send(self, report: ToLauncher) -> None:
        """Send a report, now or when it can be taken; from any thread. Nothing happens without a launcher."""
        # None also in a forked child, in which another thread may have had the lock.
        if self._descriptor() is None:
            return
        data = encode(report).encode(errors="backslashreplace")[: LINE_MAX - 1] + b"\n"
        with self._lock:
            if isinstance(report, Described):
                if not self._waiting and not self._rest:
                    self._write(data)
            else:
                key = _key(report, data)
                self._waiting.pop(key, None)
                self._waiting[key] = data
                if len(self._waiting) > WAITING_MAX:
                    del self._waiting[next(iter(self._waiting))]
            if not self._write_waiting() and not self._has_thread:
                self._has_thread = True
                OwnThread(self._write_on, "orcalike reports").start()

    def _write_on(self) -> None:
        """Write the lines that wait, until none does."""
        while (descriptor := self._descriptor()) is not None:
            ready = select.poll()
            ready.register(descriptor, select.POLLOUT)
            ready.poll()
            with self._lock:
                if self._write_waiting():
                    self._has_thread = False
                    return

    def _write_waiting(self) -> bool:
        """Write the lines that wait, as far as they are taken now; whether none does any more."""
        if self._rest and not self._write(self._rest):
            return False
        while self._waiting and not self._rest:
            key = next(iter(self._waiting))
            if not self._write(self._waiting[key]):
                break
            self._waiting.pop(key, None)
        return not self._waiting and not self._rest

    def _write(self, data: bytes) -> bool:
        """Write all, or a part after which the rest waits; whether anything was taken."""
        descriptor = self._descriptor()
        try:
            self._rest = data[os.write(descriptor, data) :] if descriptor is not None else b""
        except BlockingIOError:
            return False
        except OSError:  # the launcher has gone, and this process goes with it
            self._rest = b""
            self._waiting.clear()
        return True


def _key(report: ToLauncher, data: bytes) -> object:
    """What is the same for reports of which the last one says it all."""
    match report:
        case Joining() | Leaving():
            return data
        case Hosts(group):
            return Hosts, group
    return report.group
