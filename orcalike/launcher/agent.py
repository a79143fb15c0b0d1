"""The agent of a host: it starts and ends the processes of a run there, and reports of them to the launcher (ADR-20).

The launcher starts it through `ssh`, and the two exchange frames (`frames`) on its standard input and output. It
supervises the processes as the launcher does those of its own machine, with the same code. No process
outlives it: when its input ends, when it has received nothing for the lease's time, or when it is
killed, all processes here are killed, and the run's folder is removed.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from orcalike.launch_protocol.control_lines import Role
from orcalike.launcher import orphans
from orcalike.launcher.agent_child import AgentChild
from orcalike.launcher.child import Start
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.frame_stream import FrameStream
from orcalike.launcher.frames import CREDIT, NUMBER, SIGNAL, Frame, FrameError, Kind
from orcalike.launcher.greeting import Assignment, GreetingError, HostReport, answer
from orcalike.launcher.host_report import missing_packages, report_of
from orcalike.launcher.local_host import LocalHost
from orcalike.launcher.probes import Door, Probes
from orcalike.launcher.reaper import Reaper, guarded_run_folder
from orcalike.launcher.run_keys import own_key
from orcalike.session.host_address import own_host

#: How long a launcher may take to say what it wants.
GREETING_SECONDS = 30

_SAY_WHICH = (
    "; say at which address others reach it: --interface NAME or NETWORK, or --advertise "
    "HOST=ADDRESS"
)


class Agent:
    """One run on this host."""

    def __init__(
        self,
        assignment: Assignment,
        key: bytes,
        directory: Path,
        reaper: Reaper,
        reader: int,
        writer: int,
    ) -> None:
        self.assignment = assignment
        self.selector = selectors.DefaultSelector()
        self.children: dict[int, AgentChild] = {}
        """By the number that the launcher has given them."""
        self.host = LocalHost(
            assignment.name, assignment.plan, directory, reaper, self.selector, key
        )
        self.host.on_left = _say
        self.stream = FrameStream(self.selector, reader, writer, self._take, self._end)
        self._probes = Probes(self.selector)
        self._door: Door | None = None
        self._over = self._child_ended = False
        self._expires_at = time.monotonic() + assignment.lease

    def greet(self) -> None:
        """Report of this host."""
        self.stream.send(Frame(Kind.HELLO, 0, self._report().encode()))

    def run(self) -> None:
        """Until the launcher says so, or is gone."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda *_: self._end("a signal"))
        signal.signal(signal.SIGCHLD, self._note_child)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # so is it in the processes, at first
        while not self._over:
            now = time.monotonic()
            expired = now >= self._expires_at
            timeout = min(self._expires_at - now, self._probes.timeout(now))
            registered = self.selector.get_map()
            for key, _ in self.selector.select(max(0.0, timeout)):
                if registered.get(key.fd) is key:  # it was not closed in this same turn
                    key.data()
            now = time.monotonic()
            self._probes.expire(now)
            if self._child_ended:  # looked at each second, with the launcher's pings
                self._child_ended = False
                self.host.reap_rest()
            # What had come already when this process was let run again counts.
            if expired and now >= self._expires_at:
                return

    def kill_all(self) -> None:
        """End all processes, and what they have left behind."""
        for child in self.children.values():
            child.local.signal(signal.SIGKILL)
        orphans.kill_orphans(self.host.spared)

    def _end(self, why: str) -> None:
        self._over = True

    def _note_child(self, *_: object) -> None:
        self._child_ended = True

    def _report(self) -> HostReport:
        assignment = self.assignment
        if missing := missing_packages(assignment.plan):
            return report_of(assignment.plan, trouble=missing)
        host = assignment.advertise or assignment.interface or "its own address"
        try:
            host = self.host.own = own_host(
                advertise=assignment.advertise,
                interface=assignment.interface,
                towards=_towards(assignment),
            )
            roles: list[Role] = [*range(assignment.slots), None]
            addresses = tuple(self.host.reserve(roles))
            self.host.load_template(assignment.slots)
            self._door = Door(self.selector, host)
            return report_of(assignment.plan, host, self._door.address, addresses)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            return report_of(assignment.plan, trouble=f"{host}: {why}{_SAY_WHICH}")

    # What the launcher sends

    def _take(self, frame: Frame) -> None:
        try:
            self._do(frame)
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise FrameError(f"{frame.kind.name}: {error!r}") from None
        except Exception as error:  # struct.error is none of these
            if type(error).__name__ != "error":
                raise
            raise FrameError(frame.kind.name) from None

    def _do(self, frame: Frame) -> None:
        child = self.children.get(frame.process)
        match frame.kind:
            case Kind.PING:
                (lease,) = NUMBER.unpack(frame.data)
                self._expires_at = time.monotonic() + lease
                self._pong()
            case Kind.PROBE:
                addresses = [str(each) for each in json.loads(frame.data)]
                self._probes.try_all(addresses, self._probed)
            case Kind.START:
                self._start(frame.process, json.loads(frame.data))
            case Kind.KILL_REST:
                self.host.kill_rest()
            case Kind.QUIT:
                self._over = True
            case Kind.SIGNAL if child is not None:
                number, alone = SIGNAL.unpack(frame.data)
                (child.local.signal_alone if alone else child.local.signal)(number)
            case Kind.LINE if child is not None:
                child.local.send_line(frame.data)
            case Kind.INPUT if child is not None:
                child.take_input(frame.data)
            case Kind.CREDIT if child is not None:
                child.take_credit(*CREDIT.unpack(frame.data))
            case Kind.CLOSE if child is not None:
                child.local.close_output()
            case Kind.SIGNAL | Kind.LINE | Kind.INPUT | Kind.CREDIT | Kind.CLOSE:
                pass  # of a process that has ended meanwhile
            case _:
                raise FrameError(f"{frame.kind.name} is not for an agent")

    def _probed(self, troubles: list[str]) -> None:
        self.stream.send(Frame(Kind.PROBED, 0, json.dumps(troubles).encode()))

    def _pong(self) -> None:
        usage = {}
        for number, child in self.children.items():
            used = child.local.usage
            usage[number] = (used.cpu, used.memory, used.age)
        self.stream.send(Frame(Kind.PONG, 0, json.dumps(usage).encode()))

    def _start(self, number: int, values: dict[str, object]) -> None:
        if number in self.children:
            raise FrameError(f"process {number} is started twice")
        if self._door is not None:
            self._door.close()
            self._door = None
        start = Start.of_json(values)
        # Rank 0 gets what the launcher's standard input has, by frames.
        reader, writer = os.pipe() if start.role == 0 else (-1, -1)
        try:
            local = self.host.start(start, stdin=reader if reader >= 0 else None)
        except OSError as error:
            refusal = json.dumps([error.errno or 0, error.strerror or str(error)])
            self.stream.send(Frame(Kind.REFUSED, number, refusal.encode()))
            if writer >= 0:
                os.close(writer)
            return
        finally:
            if reader >= 0:
                os.close(reader)
        self.stream.send(Frame(Kind.STARTED, number, NUMBER.pack(local.pid)))
        forget = partial(self.children.pop, number, None)
        self.children[number] = AgentChild(
            number, local, self.stream, self.selector, writer, forget
        )


def _say(text: str) -> None:
    """A line for the user, before which the launcher puts the host's name."""
    with suppress(OSError):  # the connection has ended
        print(text, file=sys.stderr, flush=True)


def _towards(assignment: Assignment) -> tuple[str, ...]:
    """The hosts that matter to this one: first the one that has connected to it."""
    connection = os.environ.get("SSH_CONNECTION", "").split()
    return assignment.towards or tuple(connection[:1])


def _forget_engine() -> None:
    """The ranks are none of `mpiexec`'s, which has started this process."""
    for name in list(os.environ):
        if name.startswith(("PMI_", "PMIX_", "OMPI_", "PRTE_", "HYDI_")):
            del os.environ[name]


def serve(reader: int, writer: int) -> int:
    """Take an assignment, and do it; returns the exit code."""
    signal.alarm(GREETING_SECONDS)
    try:
        nonce, assignment = Assignment.read(partial(_read_from, reader))
    except GreetingError as error:
        print(f"orcalike agent: {error}", file=sys.stderr)
        return 2
    signal.alarm(0)
    identity = assignment.plan.identity
    try:
        key = own_key(assignment.key, identity, assignment.drawn_from)
        _forget_engine()
        directory, reaper = guarded_run_folder(f"{identity}.{assignment.node}")
    except (LaunchError, ValueError) as error:
        os.write(writer, answer(nonce))
        report = report_of(assignment.plan, trouble=str(error))
        os.write(writer, Frame(Kind.HELLO, 0, report.encode()).encode())
        return 1
    try:
        orphans.adopt_orphans()
        os.write(writer, answer(nonce))
        agent = Agent(assignment, key, directory, reaper, reader, writer)
        agent.greet()
        try:
            agent.run()
        finally:
            agent.kill_all()
    finally:
        reaper.close()
    return 0


def main() -> None:
    """What the launcher starts on a host."""
    # Descriptors of its own: what is printed by mistake is no frame.
    reader, writer = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    try:
        sys.exit(serve(reader, writer))
    finally:
        gc.freeze()  # as Python ends it would go through all modules time and again


def _read_from(descriptor: int, size: int) -> bytes:
    """So many bytes, fewer only at the end, and none ahead: frames follow."""
    data = b""
    while len(data) < size:
        more = os.read(descriptor, size - len(data))
        if not more:
            break
        data += more
    return data


if __name__ == "__main__":
    main()
