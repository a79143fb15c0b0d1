"""The witness: a member without replicas, which orders (DESIGN, section 8).

`orcalike run` starts it before the ranks, as a child of the launching process: busy workers never
delay the order. It serves each group of the program, one stack for each name. The launcher tells it,
by lines on a pipe, which ranks have ended; when the pipe closes, the witness ends.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import secrets
import signal
import socket
import time

import msgpack

from orcalike import control
from orcalike.runtime.manager import Code
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.driver import clock
from orcalike.transport.drivers.pump import Pump
from orcalike.transport.layers.base import Layer
from orcalike.transport.layers.xfer import Xfer
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message

GROUPS_MAX = 64

_log = logging.getLogger("orcalike")


class Seat(Layer):
    """The witness's place in one group: on top of its stack, where nothing is applied."""

    def __init__(self, stack: Stack, ended: set[int]) -> None:
        super().__init__(stack)
        self.stack = stack
        self.ended = ended

    def up_view(self, view: View, cut: bytes) -> None:
        """Whoever comes late must know who has ended."""
        if self.ended:
            self.stack.again(self)

    def proceed(self) -> None:
        """Tell the group which ranks have ended."""
        body = bytes((0, Code.ENDED << 1)) + b"".join(map(msgpack.packb, sorted(self.ended)))
        self.below.cast(Message(body))

    def up_problem(self, member: object, why: str) -> None:
        """The launcher sees to it."""
        _log.info("lost %s: %s", member, why)

    def up_exit(self, why: str) -> None:
        """It never leaves by itself."""

    def up_system_error(self, why: str) -> None:
        """Something that cannot be believed has come."""
        _log.error("witness: %s", why)


class Witness:
    """All seats of one launched program's witness, on one pump."""

    def __init__(self, listener: socket.socket, address: str) -> None:
        self.address = address
        self.ended: set[int] = set()
        self.seats: dict[str, Seat] = {}
        self.pump = Pump(_log.log)
        self.pump.stack_for = self._stack_for
        self.pump.listen(listener)

    def _stack_for(self, group: str) -> Stack | None:
        """The stack of that group; a new name makes a new group."""
        if group not in self.seats:
            if len(self.seats) >= GROUPS_MAX:
                return None
            medium = self.address.partition(":")[0]
            incarnation = secrets.randbits(64)
            me = Member(self.address, incarnation, None, witness=True)
            layers = "PACK:XFER:TOTAL:MBRSHIP:COM"
            options = {"resilience": 0, "stack": layers}
            config = StackConfig(group, options, time.time_ns() - clock())
            stack = Stack(parse_stack(f"{layers}:{medium}"), config, me, incarnation)
            stack.above = self.seats[group] = Seat(stack, self.ended)
            transfer = stack.focus("XFER")
            assert isinstance(transfer, Xfer)
            transfer.silent = True
            self.pump.add(stack)
            stack.join("", clock())
        return self.seats[group].stack

    def command(self, line: str) -> None:
        """A line from the launcher: `ended RANK`, `quit`, or what any process is told."""
        match line.split():
            case ["ended", rank] if rank.isdigit():
                self.ended.add(int(rank))
                for seat in self.seats.values():
                    self.pump.call(seat.stack.nudge, seat)
            case ["quit"]:
                self.pump.stopped = True
            case _:
                if not control.hear(line):
                    _log.error("the launcher said %r", line)


def serve(listener: socket.socket, control: int, address: str) -> None:
    """Order until the launcher says `quit`, or is gone."""
    witness = Witness(listener, address)
    rest = b""

    def read() -> None:
        nonlocal rest
        data = os.read(control, 65536)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            witness.command(line.decode())
        if not data:
            witness.pump.stopped = True

    witness.pump.watch_fd(control, read)
    gc.freeze()
    witness.pump.run_alone()
    witness.pump.close_all()


def main() -> None:
    """What the launcher starts."""
    parser = argparse.ArgumentParser(prog="orcalike.witness", description=__doc__)
    parser.add_argument("--listen-fd", type=int, required=True)
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--address", required=True)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    launcher = os.environ.get("ORCALIKE_LAUNCHER")
    if launcher:
        from orcalike.launch.rank import die_with_parent

        die_with_parent(int(launcher))
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    listener = socket.socket(fileno=arguments.listen_fd)
    serve(listener, arguments.control_fd, arguments.address)


if __name__ == "__main__":
    main()
