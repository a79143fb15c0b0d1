"""A living group of two over TCP under a key, in one process, and all that has crossed its link.

One member can be attacked while the other one stays: what both know is compared with what they knew.
"""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass, field
from unittest import mock

from orcalike.transport.drivers import sockets
from orcalike.transport.view import View
from orcalike.transport.wire.message import Message
from tests.lib.end import End
from tests.lib.processes import DEADLINE
from tests.protocol.hostile import state_of

KEY = bytes(range(32))
CASTS = 20
DETECTION = 600_000_000_000
"""Nanoseconds: one thread drives both, and may not run for long; that is no death."""


@dataclass
class Recorded:
    """What one connection has carried."""

    there: bytearray = field(default_factory=bytearray)
    """What the end that made it has sent."""
    back: bytearray = field(default_factory=bytearray)


class Relay:
    """Stands on the way of all connections of the two, passes on their bytes, and keeps them."""

    def __init__(self) -> None:
        self.recorded: list[Recorded] = []
        self._direct = sockets.connect
        self._ways: list[tuple[socket.socket, socket.socket, bytearray]] = []

    def connect(self, address: str, **options: bool) -> socket.socket:
        """In place of `sockets.connect`: a connection by way of this relay."""
        far = self._direct(address, **options)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            near = socket.create_connection(listener.getsockname())
            mine, _ = listener.accept()
        for sock in (near, mine, far):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        recorded = Recorded()
        self.recorded.append(recorded)
        self._ways += [(mine, far, recorded.there), (far, mine, recorded.back)]
        return near

    def move(self) -> None:
        """Pass on what has come."""
        for source, target, kept in self._ways:
            with contextlib.suppress(OSError):
                while data := source.recv(1 << 16):
                    kept += data
                    target.sendall(data)

    def close(self) -> None:
        """Close all that it stands between."""
        for source, _, _ in self._ways:
            source.close()


class SealedGroup:
    """Two members, of which the first listens where an attack comes; both have cast."""

    def __init__(self) -> None:
        self.relay = Relay()
        with mock.patch.object(sockets, "connect", self.relay.connect):
            self.attacked = End("tcp:127.0.0.1:0", KEY, detection=DETECTION)
            self.other = End("tcp:127.0.0.1:0", KEY, joins=False, rank=1, detection=DETECTION)
            self.other.pump.call(self.other.stack.join, self.attacked.address)
            self.until(lambda: all(view and len(view.members) == 2 for view in self.views))
        for number in range(CASTS):
            self.cast(b"%d" % number)

    @property
    def views(self) -> list[View | None]:
        """The view of each."""
        return [end.top.installed for end in (self.attacked, self.other)]

    @property
    def state(self) -> list[object]:
        """All that the two know, and all that they have delivered."""
        return [(state_of(end.stack), list(end.top.history)) for end in (self.attacked, self.other)]

    def step(self) -> None:
        """Let both members handle what has come."""
        self.attacked.pump.handle()
        self.relay.move()
        self.other.pump.handle()
        self.relay.move()
        for end in (self.attacked, self.other):
            assert end.pump.failure is None, end.pump.failure

    def until(self, holds: object) -> None:
        """Step until `holds()`."""
        assert callable(holds)
        end = time.monotonic() + DEADLINE
        while not holds():
            assert time.monotonic() < end, (self.attacked.logged, self.other.logged)
            self.step()

    def cast(self, body: bytes) -> None:
        """One message by the one that joined, which both deliver."""
        before = len(self.attacked.top.bodies)
        self.other.pump.call(self.other.stack.cast, Message(body))
        self.until(
            lambda: all(
                len(end.top.bodies) > before and end.top.bodies[-1] == body
                for end in (self.attacked, self.other)
            )
        )

    def settle(self) -> list[object]:
        """The state once nothing moves any more."""
        last = self.state
        for _ in range(1000):
            self.step()
            time.sleep(0.001)
            now, last = last, self.state
            if now == last:
                return last
        raise AssertionError("it never rests")

    def close(self) -> None:
        """Close all sockets."""
        for end in (self.attacked, self.other):
            end.pump.close_all()
        self.relay.close()
