"""The witness: a member without replicas, which orders, or keeps the state of each group, or both (ADR-25).

`orcalike run` starts it before the ranks, as a child of the launching process: busy workers never
delay the order. It serves each group of the program, one stack for each name. The launcher reports to it
by lines on a socket, which ranks have ended; when the socket closes, the witness ends. One that is
started again joins the groups that there are (`ORCALIKE_FORMED`) through the ranks, and orders in
them no more.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import socket
import threading
import time

import msgpack

from orcalike.launch_protocol import control_channel
from orcalike.launch_protocol.control_lines import (
    Describe,
    Described,
    Ended,
    parse_for_process,
)
from orcalike.launch_protocol.environment import (
    detection_at,
    find_addresses,
    find_detection,
    find_formed,
    find_layers,
    find_seeds,
    find_stack,
)
from orcalike.runtime.codes import Code
from orcalike.session.adopting import DETECTION, STACK, as_option
from orcalike.session.describing import describe_stack
from orcalike.session.group_info import shares_memory
from orcalike.session.keys import find_keys
from orcalike.session.layers import load_layers
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.driver import clock
from orcalike.transport.drivers.partition import sever
from orcalike.transport.drivers.pump import Pump
from orcalike.transport.layers.base import Layer
from orcalike.transport.layers.xfer import Xfer
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import DEFAULT_LAYERS, parse_stack
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message

GROUPS_MAX = 64

_log = logging.getLogger("orcalike")


class WitnessEndpoint(Layer):
    """The witness in one group: on top of its stack, where nothing is applied. XFER keeps the state, if it is kept."""

    needs = frozenset({"TOTAL_ORDER", "STATE"})

    def __init__(self, witness: Witness, stack: Stack) -> None:
        super().__init__(stack)
        self.stack = stack
        self.pump = witness.pump
        self.ended = witness.ended
        self.group = stack.config.group
        self.witness = witness
        self.orders = False
        self.installed: View | None = None
        self.seeds = [seed for seed in find_seeds() if seed != witness.address]
        self._tried = 0

    def ask(self) -> None:
        """Ask the next rank to be let in."""
        address = self.seeds[self._tried % len(self.seeds)]
        self.pump.call(self.stack.join, address)

    def up_join_failed(self, why: str) -> None:
        """No answer there: another one is asked soon."""
        self._tried += 1
        delay = min(0.02 * self._tried, 0.5)
        timer = threading.Timer(delay, self.pump.later, (self.ask,))
        timer.daemon = True
        timer.start()

    def up_join_denied(self, why: str) -> None:
        """The group goes on without a witness."""
        _log.error("the new witness was not let in: %s", why)

    def up_blocked(self, missing: tuple[Member, ...], rule: str) -> None:
        """No primary view can be formed without these."""
        control_channel.report_blocked(self.group, missing, rule)

    def up_view(self, view: View, cut: bytes) -> None:
        """A member that comes late must know which ranks have ended."""
        self.installed = view
        self.orders = view.position(self.stack.me.incarnation) == 0
        if shares_memory(self.stack):
            control_channel.report_shared_order(self.group)
        elif self.orders:
            control_channel.report_sequencer(self.group)
        else:
            control_channel.report_unblocked(self.group)
        self.stack.again(self)

    def proceed(self) -> None:
        """Tell the group which ranks have ended, if no other does: the sequencer does."""
        if not self.ended or not self.orders:
            return
        body = bytes((0, Code.ENDED << 1)) + b"".join(map(msgpack.packb, sorted(self.ended)))
        self.below.cast(Message(body))

    def up_problem(self, member: object, why: str) -> None:
        """A suspicion: the group acts on it."""
        _log.info("%s is suspected: %s", member, why)

    def up_exit(self, why: str) -> None:
        """The group has gone on without it, which never leaves by itself: it joins again."""
        _log.warning("the witness was %s; it joins again", why)
        self.orders = False
        self.pump.later(lambda: self.pump.call(self.witness.join_again, self.group))

    def up_system_error(self, why: str) -> None:
        """Something that cannot be believed has come."""
        _log.error("witness: %s", why)


class Witness:
    """All endpoints of one launched program's witness, on one pump."""

    def __init__(
        self,
        listener: socket.socket,
        address: str,
        formed: frozenset[str],
        layers: str,
        *,
        keeps_state: bool,
    ) -> None:
        self.address = address
        self.keeps_state = keeps_state
        self.layers = layers
        self.formed = set(formed)
        self.cut: frozenset[int | None] = frozenset()
        self.ended: set[int] = set()
        self.endpoints: dict[str, WitnessEndpoint] = {}
        self.pump = Pump(_log.log)
        self.pump.keys = find_keys() if address.startswith("tcp:") else None
        self.pump.stack_for = self._greeted_for
        self.pump.listen(listener, address)
        control_channel.listen_died(
            lambda dead: self.pump.later(lambda: self.pump.report_death(dead))
        )
        control_channel.listen_gone(
            lambda gone: self.pump.later(lambda: self.pump.report_gone(gone))
        )
        self.pump.receives_deaths = True
        control_channel.listen_cut(self._cut_off_from)
        control_channel.listen_describe(
            lambda question: self.pump.later(lambda: self._describe(question))
        )
        for group in sorted(formed):
            self._stack_for(group)

    def _greeted_for(self, group: str, address: str) -> Stack | None:
        """The stack of that group; only a rank's greeting makes a new group."""
        known = group in self.endpoints or address in find_addresses().values()
        return self._stack_for(group) if known else None

    def _stack_for(self, group: str) -> Stack | None:
        """The stack of that group; a new name makes a new group, but if there was one."""
        if group not in self.endpoints:
            if len(self.endpoints) >= GROUPS_MAX:
                return None
            medium = self.address.partition(":")[0]
            incarnation = int.from_bytes(os.urandom(8))
            me = Member(self.address, incarnation, None, witness=True)
            layers = self.layers
            set_here, slow = find_detection()
            detection = set_here or detection_at(self.address)
            # The degree is the ranks' business.
            options = {"resilience": None, STACK: layers, DETECTION: as_option(detection)}
            config = StackConfig(group, options, time.time_ns() - clock(), detection, slow)
            specs = parse_stack(f"{layers}:{medium}", WitnessEndpoint)
            stack = Stack(specs, config, me, incarnation)
            stack.above = endpoint = self.endpoints[group] = WitnessEndpoint(self, stack)
            transfer = stack.focus("XFER")
            assert isinstance(transfer, Xfer)
            transfer.silent = True
            if self.keeps_state:
                transfer.keep()
            self.pump.add(stack)
            self.pump.later(self._cut_off)
            control_channel.report_joining(group, incarnation)
            if group in self.formed:
                self.pump.later(endpoint.ask)
            else:
                stack.join("", clock())
        return self.endpoints[group].stack

    def join_again(self, group: str, now: int) -> None:
        """Take a new endpoint in a group that has expelled this one; inside the pump."""
        endpoint = self.endpoints.pop(group)
        self.formed.add(group)
        fresh = self._stack_for(group)
        assert fresh is not None
        self.pump.replace(endpoint.stack, fresh)

    def _cut_off_from(self, others: frozenset[int | None]) -> None:
        self.cut = others
        self.pump.later(self._cut_off)

    def _cut_off(self) -> None:
        def cut_off(now: int) -> None:
            addresses = find_addresses()
            sever(self.pump, [addresses[rank] for rank in self.cut if rank in addresses])

        self.pump.call(cut_off)

    def _describe(self, question: Describe) -> None:
        def answer(now: int) -> None:
            for group, endpoint in self.endpoints.items():
                found = describe_stack(endpoint.stack, endpoint.installed)
                control_channel.report_state(Described(question.number, group, found))

        self.pump.call(answer)

    def command(self, line: str) -> None:
        """A line from the launcher: `ended RANK`, or what any process gets."""
        match parse_for_process(line):
            case Ended(rank):
                self.ended.add(rank)
                for endpoint in self.endpoints.values():
                    self.pump.call(endpoint.stack.nudge, endpoint)
            case _:
                if not control_channel.receive(line):
                    _log.error("the launcher sent %r", line)


def serve(
    listener: socket.socket, line: int, address: str, layers: str, *, keeps_state: bool
) -> None:
    """Order, and keep the state if `keeps_state`, until the launcher is gone, or ends this process as no rank is left."""
    control_channel.speak_by(line)
    witness = Witness(listener, address, find_formed(), layers, keeps_state=keeps_state)
    rest = b""

    def read() -> None:
        nonlocal rest
        try:
            data = os.read(line, 65536)
        except ConnectionResetError:  # the launcher went without having read all that was sent
            data = b""
        *lines, rest = (rest + data).split(b"\n")
        for received in lines:
            witness.command(received.decode())
        if not data:
            witness.pump.stopped = True

    witness.pump.watch_fd(line, read)
    gc.freeze()
    witness.pump.run_alone()
    witness.pump.close_all()


def main() -> None:
    """What the launcher starts."""
    parser = argparse.ArgumentParser(prog="orcalike.launcher.witness", description=__doc__)
    parser.add_argument("--listen-fd", type=int, required=True)
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument(
        "--keep-state", action="store_true", help="keep the state of each group, for all ranks"
    )
    parser.add_argument("--layers-from", help="the folder of the program's own layers")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    launcher = os.environ.get("ORCALIKE_LAUNCHER")
    if launcher:
        from orcalike.launcher.bootstrap import die_with_parent, own_key

        die_with_parent(int(launcher))
        own_key()
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    listener = socket.socket(fileno=arguments.listen_fd)
    load_layers(find_layers(), arguments.layers_from)
    serve(
        listener,
        arguments.control_fd,
        arguments.address,
        find_stack() or DEFAULT_LAYERS,
        keeps_state=arguments.keep_state,
    )


if __name__ == "__main__":
    main()
