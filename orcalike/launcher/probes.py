"""Whether hosts reach each other: each has a door open before the run begins, and the others knock at it.

Members have connections (TCP) and heartbeats (UDP) at the same port, so both are tried: a firewall that lets only the
one through has members suspected that live.
"""

from __future__ import annotations

import contextlib
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
#: What is sent is answered as it is; several at once, since a network may lose some.
DATAGRAM, DATAGRAMS = b"orcalike probe", 8
#: What is said of a host that connections reach alone.
NO_DATAGRAMS = "connections (TCP) are let through, and datagrams (UDP) are not"
#: Ports that are tried until one is free for both.
BINDS = 10

_GONE = (errno.EAGAIN, errno.ECONNABORTED, errno.EINTR)
"""The other end has gone again."""


class Door:
    """Where a host listens before anything else does: connections are let go again, datagrams are answered."""

    def __init__(self, selector: selectors.BaseSelector, host: str) -> None:
        """Raises OSError if the system has no room for it."""
        self._selector = selector
        self._listener, self._datagrams = _bind_both(host)
        self._listener.listen(128)
        self._spare = -1
        self._have_spare()
        self.address = tcp_address(self._listener)
        selector.register(self._listener, selectors.EVENT_READ, self._answer)
        selector.register(self._datagrams, selectors.EVENT_READ, self._answer_datagram)

    def close(self) -> None:
        """Listen no more."""
        registered = self._selector.get_map()
        for each in (self._listener, self._datagrams):
            if each.fileno() in registered:
                self._selector.unregister(each)
            each.close()
        self._let_spare_go()

    def _answer(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            if error.errno not in _GONE:
                self._make_room()
            return
        connection.close()

    def _make_room(self) -> None:
        """There is no descriptor for a connection that waits: it has the spare one for a moment.

        Without that they are left waiting, which is as good: what has connected has reached this host.
        """
        if self._spare >= 0:
            self._let_spare_go()
            with contextlib.suppress(OSError):
                self._listener.accept()[0].close()
            self._have_spare()
        if self._spare < 0:
            self._selector.unregister(self._listener)

    def _have_spare(self) -> None:
        """Have a descriptor that can be let go, if there is one."""
        with contextlib.suppress(OSError):
            self._spare = os.open(os.devnull, os.O_RDONLY)

    def _let_spare_go(self) -> None:
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1

    def _answer_datagram(self) -> None:
        with contextlib.suppress(OSError):
            said, source = self._datagrams.recvfrom(len(DATAGRAM) + 1)
            if said == DATAGRAM:
                self._datagrams.sendto(said, source)


def _bind_both(host: str) -> tuple[socket.socket, socket.socket]:
    """Sockets for connections and for datagrams at one port; raises OSError."""
    for _ in range(BINDS - 1):
        with contextlib.suppress(OSError):  # the port is free for connections alone
            return _bind_pair(host)
    return _bind_pair(host)


def _bind_pair(host: str) -> tuple[socket.socket, socket.socket]:
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(bind_tcp(host, 0))
        datagrams = stack.enter_context(socket.socket(listener.family, socket.SOCK_DGRAM))
        datagrams.bind(listener.getsockname())
        listener.setblocking(False)
        datagrams.setblocking(False)
        stack.pop_all()
    return listener, datagrams


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
        for number, probe in list(self._open.items()):
            sends = probe.type == socket.SOCK_DGRAM
            self._finish(number, NO_DATAGRAMS if sends else os.strerror(errno.ETIMEDOUT))

    def _try(self, number: int, address: str) -> None:
        host, _, digits = address.removeprefix("tcp:").rpartition(":")
        host, port = host.strip("[]"), int(digits)
        try:
            probe = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        except OSError as error:  # there are no descriptors for more
            self._troubles[number] = error.strerror or str(error)
            return
        probe.setblocking(False)
        trouble = probe.connect_ex((host, port))
        if trouble not in (0, errno.EINPROGRESS):
            probe.close()
            self._troubles[number] = os.strerror(trouble)
            return
        self._open[number] = probe
        self._selector.register(probe, selectors.EVENT_WRITE, partial(self._connected, number))

    def _connected(self, number: int) -> None:
        probe = self._open[number]
        trouble = probe.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if trouble:
            self._finish(number, os.strerror(trouble))
        else:
            self._try_datagrams(number, probe)

    def _try_datagrams(self, number: int, connected: socket.socket) -> None:
        """What connections reach, try with datagrams."""
        there, family = connected.getpeername(), connected.family
        self._selector.unregister(connected)
        connected.close()  # first: there may be no descriptor beside it
        probe = self._open[number] = socket.socket(family, socket.SOCK_DGRAM)
        probe.setblocking(False)
        self._selector.register(probe, selectors.EVENT_READ, partial(self._answered, number))
        try:
            probe.connect(there)
            for _ in range(DATAGRAMS):
                probe.send(DATAGRAM)
        except OSError:  # a firewall may answer so
            self._finish(number, NO_DATAGRAMS)

    def _answered(self, number: int) -> None:
        try:
            said = self._open[number].recv(len(DATAGRAM) + 1)
        except OSError:
            said = b""
        self._finish(number, "" if said == DATAGRAM else NO_DATAGRAMS)

    def _finish(self, number: int, trouble: str) -> None:
        probe = self._open.pop(number)
        self._selector.unregister(probe)
        probe.close()
        self._troubles[number] = trouble
        self._end_if_done()

    def _end_if_done(self) -> None:
        if not self._open:
            self._expires_at = float("inf")
            self._done(self._troubles)
