"""A member alone in its group, which listens: driven by the test's own thread."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable

from orcalike.transport.config import StackConfig
from orcalike.transport.drivers import sockets
from orcalike.transport.drivers.descriptors import Alarm
from orcalike.transport.drivers.pump import Pump
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member
from tests.lib.keyed import ring_of
from tests.lib.processes import DEADLINE
from tests.lib.recording_application import RecordingApplication


class End:
    """One such member; its application and its log are kept.

    With `shares_memory` it passes its process, and takes others', as one with its order in shared memory.
    """

    def __init__(
        self,
        address: str,
        key: bytes | None = None,
        *,
        joins: bool = True,
        rank: int = 0,
        detection: int = 500_000_000,
        shares_memory: bool = False,
    ) -> None:
        listener, self.address = sockets.listen(address)
        me = Member(self.address, secrets.randbits(64), rank)
        layers = parse_stack(f"TOTAL:MBRSHIP:COM:{address.split(':')[0]}")
        self.stack = Stack(layers, StackConfig("group", detection=detection), me, 1)
        self.stack.above = self.top = RecordingApplication(self.stack)
        self.stack.alarm = Alarm() if shares_memory else None
        self.logged: list[str] = []
        self.pump = Pump(lambda level, text: self.logged.append(text))
        self.pump.keys = None if key is None else ring_of(key)
        self.pump.stack_for = lambda group, address: self.stack
        self.pump.add(self.stack)
        self.pump.listen(listener, self.address)
        if joins:
            self.pump.call(self.stack.join, "")

    def connect(self) -> socket.socket:
        sock = sockets.connect(self.address)
        sock.setblocking(True)
        sock.settimeout(DEADLINE)
        return sock

    def until(self, holds: Callable[[], object]) -> None:
        end = time.monotonic() + DEADLINE
        while not holds():
            assert time.monotonic() < end, self.logged
            self.pump.handle()
            time.sleep(0.001)

    def has_answered(self, sock: socket.socket) -> bool:
        """Whether the member has sent anything."""
        sock.setblocking(False)
        try:
            return bool(sock.recv(1))
        except BlockingIOError:
            return False

    def is_closed(self, sock: socket.socket) -> bool:
        """Whether the member has closed its end."""
        sock.setblocking(False)
        try:
            while sock.recv(4096):
                pass
        except BlockingIOError:
            return False
        except ConnectionError:
            pass
        return True

    @property
    def peers(self) -> dict[str, int]:
        """The endpoints that have greeted or are to greet, by address: the link of each, or -1."""
        found = self.stack.dump()["COM"]["peers"]
        assert isinstance(found, dict)
        return found
