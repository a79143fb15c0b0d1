"""The endpoint of one process in one group: its socket, its incarnation, and the stacks made for it."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from collections.abc import Hashable
from typing import Any

from orcalike.errors import OrcalikeError, StackError
from orcalike.launch_protocol.environment import detection_at
from orcalike.session import adopting, listeners
from orcalike.session.deadline import Deadline
from orcalike.session.listeners import SharedListener
from orcalike.session.options import JoinOptions
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers import sockets
from orcalike.transport.drivers.addresses import check_open, split, tcp
from orcalike.transport.drivers.driver import clock
from orcalike.transport.drivers.pump import Pump
from orcalike.transport.layers.base import Layer
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import DEFAULT_LAYERS, name_layers, parse_stack
from orcalike.transport.view import Member, View

KIND = "kind"
"""The option that says what a group is of: objects, or messages."""


OUT_WITHIN = 0.2
"""Seconds that threads of the program have to come out of a pump that has stopped."""


class Endpoint:
    """Where one process listens, and the stack strings and settings that its stacks are made with.

    `upper` is the layer on top of the stack, whose needs the stack is checked for: raises StackError.
    """

    def __init__(self, options: JoinOptions, upper: type[Layer]) -> None:
        self._options = options
        self._upper = upper
        self._layers = parse_stack(adopting.stack_to_ask_for(options), upper)
        self._check_witness()
        self.incarnation = int.from_bytes(os.urandom(8))
        """The number of this membership; a process that joins again has another one."""
        self.address = ""
        """Where others reach this process; "" if it does not listen."""
        self.was_in = False
        """It has been in the group: it makes none any more, and lets no other be made."""
        self.rank = options.rank
        """The rank that is asked for: the program's from when it has joined."""
        self.detection = 0
        """D of the stacks that are made, ns."""
        self._listener: SharedListener | None = None

    def open(self) -> None:
        """Listen, with other groups of this process where that is possible; until the endpoint closes."""
        options = self._options
        if options.how != "alone":
            try:
                self._listener = listeners.take(
                    self._place(), self.wire_name, options.keys, self._listen
                )
            except OrcalikeError as error:
                raise self._explained(error) from None
            self.address = self._listener.address
        self.detection = options.detection or detection_at(self.address)

    def _explained(self, error: OrcalikeError) -> OrcalikeError:
        """Why this process cannot listen, in terms of what the program asked for."""
        if listeners.is_member(self._place(), self.wire_name):
            return OrcalikeError(
                f"this process is a member of the group {self._options.name!r} already: pass that group "
                "on, or join(name=...) another one"
            )
        if self._options.listen and os.strerror(errno.EADDRINUSE) in str(error):
            return OrcalikeError(
                f"{error}: join the group that listens there with seeds=, or let the processes meet with at="
            )
        if self._options.how == "seeds" and not self._options.listen:
            return OrcalikeError(
                f"{error}: without listen= a process listens beside the member that it joins"
            )
        return error

    @property
    def wire_name(self) -> str:
        """How connections name the group."""
        launch, name = self._options.launch, self._options.name
        return name if launch is None else launch.wire_name(name)

    @property
    def makes_group(self) -> bool:
        """Whether this process makes the group, and joins none that is there."""
        launch = self._options.launch
        makes = launch is not None and launch.makes_group(self._options.name)
        return makes or self._options.how in ("alone", "listen")

    @property
    def may_make_group(self) -> bool:
        """Whether it makes the group if all ranks are in none, and else joins it."""
        launch = self._options.launch
        return launch is not None and launch.may_make_group and not self.was_in

    def ask(self, stack: Stack, addresses: tuple[str, ...], now: int) -> None:
        """Ask the endpoints at these addresses to be let in: one, or all if it may make the group."""
        if self.may_make_group:
            stack.make_or_join(addresses, now)
        else:
            stack.join(addresses[0], now)

    def adopts(self, refusal: str) -> bool:
        """Whether the group refuses for what this process has not asked for; its next stack is as the group's."""
        options = self._options
        if (
            options.detection is None
            and (found := adopting.detection_of_group(refusal)) is not None
        ):
            self.detection = found
            return True
        if options.stack is not None or options.launch is not None:
            return False
        medium = self._layers[-1].medium
        if (layers := adopting.stack_of_group(refusal, medium)) is None:
            return False
        self._layers = parse_stack(f"{layers}:{medium}", self._upper)
        return True

    def renew(self) -> None:
        """The next stack is that of another incarnation."""
        self.incarnation = int.from_bytes(os.urandom(8))

    def targets(self, last: View | None) -> tuple[str, ...]:
        """Where the group can be joined: at the members of its last view, and at the addresses that were given."""
        launch = self._options.launch
        named = launch.targets if launch else self._options.seeds
        members = [member.address for member in last.members] if last else []
        return tuple(
            each for each in dict.fromkeys((*members, *named)) if each not in ("", self.address)
        )

    def arrived(self, me: Member | None) -> None:
        """The program has joined, as this member."""
        self.was_in = True
        self.rank = self.rank if me is None else me.rank

    def make_stack(self, settings: dict[str, Any] | None = None) -> Stack:
        """A stack for this incarnation; `settings` are the group's, if they are known."""
        options = self._options
        if options.stack is not None:
            self._check_medium()
        if settings is None:
            # All ranks of a program ask for the same; elsewhere a joiner takes what there is.
            makes = self.makes_group or self.may_make_group
            asks = makes or options.launch is not None or options.resilience != 0
            resilience = options.resilience if asks else None
            says_degree = makes or options.degree == "available"
            degree = options.degree if says_degree else None
            settings = {"resilience": resilience, "degree": degree}
        settings = {
            KIND: vars(self._upper).get("kind"),  # first: what else differs matters less
            **settings,
            adopting.STACK: name_layers(self._layers),
            adopting.DETECTION: adopting.as_option(self.detection),
        }
        launch = options.launch
        config = StackConfig(
            self.wire_name,
            settings,
            time.time_ns() - clock(),
            self.detection,
            options.slow,
            launch.size if launch is not None and launch.unanimous and not self.was_in else 0,
            options.freshness,
        )
        me = Member(self.address, self.incarnation, self.rank)
        return Stack(self._layers, config, me, self.incarnation)

    def listen_with(self, pump: Pump) -> None:
        """Have the pump accept connections."""
        pump.insecure = self._options.insecure
        if self._listener is not None:
            pump.listen_by(self._listener.listener, self.wire_name)

    def close_pump(self, pump: Pump, stack: Stack, within: float) -> None:
        """Close its sockets, and all that it and its last stack have as soon as no thread is in them.

        Where an operation does not end within so many seconds, they keep that for it.
        """
        pump.close_all()
        out = Deadline(within)
        while pump.fileno() >= 0 and not _runs(pump) and not out.is_over:
            time.sleep(0.001)  # threads of the program come out of their calls
            pump.close_all()
        if pump.fileno() < 0 and stack.alarm is not None:
            stack.alarm.close()

    def close(self) -> None:
        """Listen no more."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listeners.give_back(listener, self.wire_name)
        if self._options.private:
            with contextlib.suppress(OSError):
                for entry in os.scandir(self._options.private):  # of processes that were killed
                    os.unlink(entry)
                os.rmdir(self._options.private)

    def _place(self) -> Hashable:
        """What is the same for groups that are to be reached at the same place."""
        options = self._options
        if options.launch is not None:
            return options.launch.listen
        if options.listen:
            return options.listen, options.advertise
        return self._folder()

    def _listen(self) -> tuple[socket.socket, str]:
        options, launch = self._options, self._options.launch
        if launch is not None:
            if launch.listen_fd is not None:
                os.environ.pop("ORCALIKE_LISTEN_FD", None)  # it is there once, and for no child
                os.set_inheritable(launch.listen_fd, False)
                return socket.socket(fileno=launch.listen_fd), launch.listen
            return sockets.listen(launch.listen, beyond=options.beyond)
        listener, own = sockets.listen(options.listen or self._beside(), beyond=options.beyond)
        return listener, self._reached(own)

    def _beside(self) -> str:
        """A Unix socket beside the one through which this process joins."""
        return f"unix:{os.path.join(self._folder(), f'{self.incarnation:016x}')}"

    def _folder(self) -> str:
        """That of the first seed whose folder is there."""
        folders = self._options.folders
        return next(filter(os.path.isdir, folders), folders[0])

    def _reached(self, own: str) -> str:
        """Where others reach the socket whose own address that is."""
        if not self._options.advertise:
            return own
        _, host, port = split(self._options.advertise)
        check_open(host, beyond=self._options.beyond)
        return tcp(host, port or split(own)[2])

    def _check_medium(self) -> None:
        """Raise StackError if the stack names another medium than that of the member's socket."""
        medium, own = self._layers[-1].medium, self.address.partition(":")[0]
        if medium == "sim":
            raise StackError("COM:sim runs in the simulator only: write COM:unix or COM:tcp")
        if own and medium != own:
            raise StackError(
                f"the stack ends in COM:{medium}, but this member communicates by {own} sockets "
                f"({self.address}): write COM:{own}, or use a {medium}: address"
            )

    def _check_witness(self) -> None:
        """Raise StackError if a witness orders that has another stack."""
        launch, layers = self._options.launch, name_layers(self._layers)
        if launch is None or launch.sequencer != "witness":
            return
        its_own = launch.stack or DEFAULT_LAYERS
        if layers != its_own:
            raise StackError(
                f"the witness of a launched program has the stack {its_own}, not {layers}: start the "
                f"program with `orcalike run --stack {layers}:{self._layers[-1].medium}`, which all of "
                "its groups have then, or with `orcalike run --sequencer rank`"
            )


def _runs(pump: Pump) -> bool:
    """Whether the pump's own thread has not ended."""
    return pump.thread is not None and pump.thread.is_alive()
