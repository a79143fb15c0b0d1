"""Whether hosts reach each other: each has a door open before the run begins, and the others knock at it."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial

from orcalike.launcher.listeners import bind_tcp, tcp_address

#: How long a host may take to let another one in.
PROBE_SECONDS = 3.0
#: How many hosts are tried.
PROBES_MAX = 4096


class Door:
    """Where a host listens before anything else does; what connects is let go again."""

    def __init__(self, selector: selectors.BaseSelector, host: str) -> None:
        """Raises OSError if the system has no room for it."""
        self._selector = selector
        self._listener = bind_tcp(host, 0)
        self._listener.setblocking(False)
        self._listener.listen(128)
        self.address = tcp_address(self._listener)
        selector.register(self._listener, selectors.EVENT_READ, self._answer)

    def close(self) -> None:
        """Listen no more."""
        self._selector.unregister(self._listener)
        self._listener.close()

    def _answer(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        connection.close()


class Probes:
    """Tries addresses, as events of a selector's loop."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._open: dict[int, socket.socket] = {}
        self._troubles: list[str] = []
        self._expires_at = float("inf")
        self._done: Callable[[list[str]], None] = lambda troubles: None

    def try_all(self, addresses: Sequence[str], done: Callable[[list[str]], None]) -> None:
        """Call `done` with why each of them cannot be reached, "" for one that can; raises ValueError."""
        if len(addresses) > PROBES_MAX or self._open:
            raise ValueError("too many addresses to try")
        self._troubles, self._done = [""] * len(addresses), done
        self._expires_at = time.monotonic() + PROBE_SECONDS
        for number, address in enumerate(addresses):
            self._try(number, address)
        self._end_if_done()

    def timeout(self, now: float) -> float:
        """Seconds until `expire` has something to do."""
        return max(0.0, self._expires_at - now)

    def expire(self, now: float) -> None:
        """Give up what has taken too long."""
        if now < self._expires_at:
            return
        for number in list(self._open):
            self._finish(number, errno.ETIMEDOUT)

    def _try(self, number: int, address: str) -> None:
        host, _, port = address.removeprefix("tcp:").rpartition(":")
        host = host.strip("[]")
        probe = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        probe.setblocking(False)
        self._open[number] = probe
        trouble = probe.connect_ex((host, int(port)))
        if trouble != errno.EINPROGRESS:
            self._open.pop(number).close()
            self._note(number, trouble)
        else:
            self._selector.register(probe, selectors.EVENT_WRITE, partial(self._connected, number))

    def _connected(self, number: int) -> None:
        self._finish(number, self._open[number].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _finish(self, number: int, trouble: int) -> None:
        probe = self._open.pop(number)
        self._selector.unregister(probe)
        probe.close()
        self._note(number, trouble)
        self._end_if_done()

    def _note(self, number: int, trouble: int) -> None:
        self._troubles[number] = os.strerror(trouble) if trouble else ""

    def _end_if_done(self) -> None:
        if not self._open:
            self._expires_at = float("inf")
            self._done(self._troubles)
