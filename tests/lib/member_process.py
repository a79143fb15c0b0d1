"""Members of one group, driven by the test's own thread or in a process of their own."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from orcalike.transport.config import StackConfig
from orcalike.transport.drivers import sockets
from orcalike.transport.drivers.driver import clock
from orcalike.transport.drivers.pump import Pump
from orcalike.transport.layers.base import Layer
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message
from tests.lib.processes import DEADLINE

#: These fit a socket that is not read, and take two reads.
CASTS = [b"%1500d" % number for number in range(60)]

#: A member that casts without waiting for any other, and is killed with all of that under way.
SENDER = """
import os, signal, sys
from tests.lib.member_process import CASTS, End
from orcalike.transport.wire.message import Message
end = End("{address}")
end.join("{seed}")
end.until(lambda: end.view)
print(end.member.incarnation, os.getpid(), flush=True)
how = sys.stdin.readline().strip()
if how == "fork":
    child = os.fork()
    if child == 0:
        signal.pause()
    print(child, flush=True)
if how == "mute":
    end.pump.heartbeat.close()
    print("mute", flush=True)
    sys.stdin.readline()
if how in ("kill", "fork"):
    for body in CASTS:
        end.pump.call(end.stack.cast, Message(body))
    end.pump.drain(60.0)
    os.kill(os.getpid(), signal.SIGKILL)
end.pump.close_all()
print("closed", flush=True)
sys.stdin.readline()
"""


class RecordingStack(Stack):
    """A stack that records its inputs."""

    events: list[tuple[str, Any]]

    def link_down(self, link: int, why: str, now: int) -> None:
        peer = self.bottom.peer_at(link)
        self.events.append(("link_down", peer.incarnation if peer else None))
        super().link_down(link, why, now)

    def died(self, incarnation: int, now: int, lease: int = 0, age: int = 0) -> None:
        assert now <= clock()
        self.events.append(("died", incarnation))
        super().died(incarnation, now, lease, age)

    def heard(self, incarnation: int, when: int) -> None:
        assert when <= clock()
        self.events.append(("heard", incarnation))
        super().heard(incarnation, when)

    def lives(self, incarnation: int) -> None:
        self.events.append(("lives", incarnation))
        super().lives(incarnation)

    def expire(self, now: int) -> None:
        self.events.append(("expire", None))
        super().expire(now)


class Top(Layer):
    """What stands on top: it takes the casts."""

    def __init__(self, end: End) -> None:
        super().__init__(end.stack)
        self.end = end

    def up_view(self, view: View, cut: bytes) -> None:
        self.end.view = view

    def up_cast(self, message: Message) -> None:
        self.end.stack.events.append(("cast", bytes(message.body)))

    def up_problem(self, member: object, why: str) -> None:
        self.end.stack.events.append(("problem", why))

    def up_blocked(self, missing: tuple[Member, ...], rule: str) -> None:
        pass

    def up_exit(self, why: str) -> None:
        pass


class End:
    """One member: a stack and a pump, driven by the test's own thread."""

    def __init__(
        self, address: str, detection: int = 3_000_000_000, slow: int = 60_000_000_000
    ) -> None:
        listener, address = sockets.listen(address)
        self.member = Member(address, secrets.randbits(64), None, witness=True)
        self.view: View | None = None
        layers = parse_stack(f"TOTAL:MBRSHIP:COM:{address.split(':')[0]}")
        # By default a busy machine is not to be taken for a silent member.
        config = StackConfig("g", {"resilience": 0}, time.time_ns() - clock(), detection, slow)
        self.stack = RecordingStack(layers, config, self.member, 1)
        self.stack.events = []
        self.stack.above = Top(self)
        self.logged: list[str] = []
        self.pump = Pump(lambda level, text: self.logged.append(text))
        self.pump.stack_for = lambda group, address: self.stack
        self.pump.add(self.stack)
        self.pump.listen(listener, address)

    def join(self, address: str) -> None:
        self.pump.call(self.stack.join, address)

    def until(self, condition: Callable[[], object]) -> None:
        """Drive it until that holds."""
        end = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < end, (self.stack.events[-5:], self.logged)
            self.pump.handle()
            time.sleep(0.001)

    def events_of(self, *kinds: str) -> list[tuple[str, Any]]:
        """The inputs of these kinds, and the casts and problems that came out."""
        return [event for event in self.stack.events if event[0] in kinds]


Ends = Callable[..., End]


class Sender:
    """A member in a process of its own."""

    def __init__(self, end: End, address: str) -> None:
        text = SENDER.replace("{address}", address).replace("{seed}", end.member.address)
        self.end = end
        self.process = subprocess.Popen(
            [sys.executable, "-c", text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=Path(__file__).parents[2],
        )

    def come_in(self) -> None:
        """Wait until it is a member."""
        self.end.until(lambda: self.end.view is not None and len(self.end.view.members) == 2)
        self.incarnation, self.pid = map(int, self.read().split())

    def read(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def tell(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()


@contextlib.contextmanager
def killed_at_the_end(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The process, which does not outlive the block."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def greet(address: str, incarnation: int) -> bytes:
    """The greeting of an endpoint, as COM writes it."""
    config = StackConfig("g", {"resilience": 0})
    me = Member(address, incarnation, None, witness=True)
    stack = Stack(parse_stack("TOTAL:MBRSHIP:COM:unix"), config, me, 1)
    stack.link_up(1, "", 1)
    [(_, frame)] = stack.out.take()
    return bytes(frame)


def peer_is_linked(end: End, incarnation: int) -> bool:
    peers = (end.stack.bottom.peer_at(link) for link in range(64))
    return any(peer is not None and peer.incarnation == incarnation for peer in peers)


def stop(sender: Sender) -> None:
    """Have its process stand still, as SIGSTOP does; meanwhile its kernel does not say that it lives."""
    sender.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, sender.process.pid, os.WSTOPPED | os.WNOWAIT)
