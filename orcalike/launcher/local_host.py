"""This host: it starts processes of a run here, and keeps addresses, a folder and the run's key for them.

The launcher has one for its own machine, an agent one for the machine that it was started on. The variables of
the processes are written by `launch_protocol.environment`.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from orcalike.launch_protocol.control_lines import Role
from orcalike.launch_protocol.environment import OF_ONE_PROCESS, RankEnvironment, RunEnvironment
from orcalike.launcher import bootstrap
from orcalike.launcher.child import Start
from orcalike.launcher.listeners import bind_tcp, listen, tcp_address
from orcalike.launcher.local_child import ControlLine, LocalChild
from orcalike.launcher.orphans import describe_left, kill_orphans, reap_orphans
from orcalike.launcher.reaper import Reaper
from orcalike.launcher.run_plan import RunPlan, key_memory
from orcalike.launcher.template import Output, Process, Template


class LocalHost:
    """The processes of one run on this host; see `Host`."""

    def __init__(
        self,
        name: str,
        plan: RunPlan,
        directory: Path,
        reaper: Reaper,
        selector: selectors.BaseSelector,
        key: bytes = b"",
    ) -> None:
        """`directory` is the run's own folder here, `key` that of its connections, if they need one."""
        self.name, self.plan, self.directory = name, plan, directory
        self.running: dict[int, LocalChild] = {}
        """By process number."""
        self.own = "127.0.0.1"
        """The address at which others reach this host by TCP."""
        self.spared: set[int] = {reaper.pid}
        """Other children of this process, which are left alone by `reap_rest` and `kill_rest`."""
        self.commands: Callable[[], set[int]] = set
        """Those that reach other hosts now, and that are left alone, too."""
        self.on_left: Callable[[str], None] = lambda text: None
        """Called with a line on each process that a rank has left behind and that cannot be killed."""
        self._reaper, self._selector = reaper, selector
        self._key_fd = key_memory(key) if key else -1
        self._template: Template | None = None
        self._to_fork = 0
        self._ports: list[socket.socket] = []
        """They keep TCP ports for the processes; no process can connect to them."""

    def reserve(self, roles: Sequence[Role]) -> list[str]:
        """An address for each of these processes, that lasts as long as the run.

        Raises OSError if the system has no room for it.
        """
        if self.plan.scheme == "unix":
            names = ["witness" if role is None else f"r{role}" for role in roles]
            return [f"unix:{self.directory / name}" for name in names]
        ports = [bind_tcp(self.own, 0) for _ in roles]
        self._ports += ports
        return [tcp_address(port) for port in ports]

    def start(self, start: Start, stdin: int | None = None) -> LocalChild:
        """Start a process. Rank 0 has the input `stdin`, or that of this process; the others have none.

        Raises OSError if the system has no room for it.
        """
        first = start.role is None or (
            self.plan.sequencer == "rank" and start.role == 0 and not start.restarts
        )
        # Others can connect before the first member runs: the kernel keeps them waiting.
        backlog = max(128, 2 * self.plan.nprocs)
        listener = listen(start.listen, backlog) if first else None
        try:
            if start.role is None:
                assert listener is not None
                child = self._start_witness(start, listener)
            else:
                child = self._start_rank(start, start.role, listener, stdin)
        finally:
            if listener is not None:  # it is the member's now, so that its death is noticed
                listener.close()
        child.attach(self._selector)
        self.running[child.pid] = child
        if start.role is None:  # a rank says it itself
            self._reaper.watch(child.pid)
        return child

    def reap_rest(self) -> None:
        """Reap what the ranks have left behind here and has ended."""
        reap_orphans(self.spared | self.commands() | self.running.keys())

    def kill_rest(self) -> None:
        """Kill what the ranks have left behind here."""
        self.close_template()
        left = kill_orphans(self.spared | self.commands() | self.running.keys())
        self.spared |= left
        for pid in sorted(left):
            self.on_left(describe_left(pid))

    def close(self) -> None:
        """Let the ports go; the reaper removes the folder."""
        self.close_template()
        for port in self._ports:
            port.close()

    # The template of ranks that start together

    def load_template(self, ranks: int) -> Template | None:
        """Begin to load what so many ranks, which start here soon, have in common; None if that is of no use.

        Raises OSError if the system has no room for it.
        """
        if ranks > 1:
            launcher = {
                "ORCALIKE_LAUNCHER": str(os.getpid()),
                "ORCALIKE_STACK": self.plan.stack,
            }
            environment = self._inherited(ranks) | dict(self.plan.environment) | launcher
            self._template = Template(self._command(), environment, self.plan.directory)
            self._to_fork = ranks
            self.spared.add(self._template.pid)
        return self._template

    def close_template(self) -> None:
        """All have started."""
        if self._template is not None:
            self._template.close()
            self.spared.discard(self._template.pid)
            self._template = None

    def _reaped(self, child: LocalChild) -> None:
        del self.running[child.pid]
        self._reaper.forget(child.pid)

    # Processes

    def _start_rank(
        self, start: Start, rank: int, listener: socket.socket | None, stdin: int | None
    ) -> LocalChild:
        reader, writer = os.pipe()
        passed = {"ORCALIKE_REPORT_FD": writer, "ORCALIKE_REAPER_FD": self._reaper.fileno()}
        if listener is not None:
            passed["ORCALIKE_LISTEN_FD"] = listener.fileno()
        with os.fdopen(writer, "wb", buffering=0):
            return self._start(
                self._command(),
                start,
                self.rank_environment(start, rank, listener),
                passed,
                stdin=stdin if rank == 0 and may_read_stdin() else subprocess.DEVNULL,
                report=os.fdopen(reader, "rb", buffering=0),
                directory=self.plan.directory,
            )

    def _command(self) -> list[str]:
        """Of a rank."""
        plan = self.plan
        command = [sys.executable, bootstrap.__file__, *(["-m"] if plan.module else [])]
        return [*command, plan.program, *plan.arguments]

    def _start_witness(self, start: Start, listener: socket.socket) -> LocalChild:
        """Start the member without replicas that orders, or keeps the state, or both."""
        plan = self.plan
        environment = (
            self._inherited(start.slots) | RunEnvironment(**self._of_the_run(start)).to_environ()
        )
        command = [
            *(sys.executable, "-P", "-m", "orcalike.launcher.witness"),
            *("--listen-fd", str(listener.fileno()), "--address", start.listen),
        ]
        if plan.keeps_state:
            command.append("--keep-state")
        if plan.layers:
            command += ["--layers-from", str(plan.program_folder)]
        return self._start(
            command, start, environment, {}, [listener.fileno()], stdin=subprocess.DEVNULL
        )

    def _start(
        self,
        command: list[str],
        start: Start,
        environment: dict[str, str],
        named: dict[str, int],
        passed: Sequence[int] = (),
        *,
        stdin: int | None,
        report: BinaryIO | None = None,
        directory: Path | None = None,
    ) -> LocalChild:
        """`named` are descriptors for it, by the variables that name them; `passed` has others."""
        theirs, ours = socket.socketpair()
        theirs.setblocking(False)
        ours.setblocking(False)
        line = ControlLine(ours)
        with theirs:
            if start.role is None:
                command += ["--control-fd", str(theirs.fileno())]
            named["ORCALIKE_CONTROL_FD"] = theirs.fileno()
            if self._key_fd >= 0:
                named["ORCALIKE_KEY_FD"] = self._key_fd
            environment |= {name: str(descriptor) for name, descriptor in named.items()}
            is_first = start.role is not None and not start.restarts
            process = self._fork(environment, named, stdin) if is_first else None
            if process is None:
                started = subprocess.Popen(
                    command,
                    env=environment,
                    cwd=directory,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    pass_fds=[*named.values(), *passed],
                    start_new_session=True,
                )
                process = started, cast(Output, (started.stdout, started.stderr))
        return LocalChild(
            *process,
            line,
            report,
            host=self.name,
            restarts=start.restarts,
            kills_rest=self.plan.kills_rest,
            on_reaped=self._reaped,
        )

    def _fork(
        self, environment: dict[str, str], named: dict[str, int], stdin: int | None
    ) -> tuple[Process, Output] | None:
        """One of the ranks that start together; None if they have no template."""
        if self._template is None:
            return None
        forked = None
        if self._template.is_ready:
            null = os.open(os.devnull, os.O_RDONLY) if stdin == subprocess.DEVNULL else -1
            try:
                given = null if null >= 0 else stdin or 0
                forked = self._template.fork(environment, named, given)
            finally:
                if null >= 0:
                    os.close(null)
        self._to_fork -= 1
        if self._to_fork == 0 or forked is None:
            self.close_template()
        return forked

    # Variables

    def rank_environment(
        self, start: Start, rank: int, listener: socket.socket | None = None
    ) -> dict[str, str]:
        """The environment of one rank; what the user has set comes on top."""
        ours = RankEnvironment(
            **self._of_the_run(start),
            rank=rank,
            listen=start.listen,
            listen_fd=listener.fileno() if listener else None,
            local_rank=start.slot,
        )
        return self._inherited(start.slots) | ours.to_environ() | dict(self.plan.environment)

    def _inherited(self, slots: int) -> dict[str, str]:
        """What comes from this process's own environment, and what Python and libraries look for."""
        environment = {
            name: value for name, value in os.environ.items() if name not in OF_ONE_PROCESS
        } | dict(self.plan.variables)
        environment.setdefault("OMP_NUM_THREADS", str(threads_per_rank(slots)))
        if environment.get("PYTHONHASHSEED", "random") == "random":
            environment["PYTHONHASHSEED"] = str(self.plan.seed % 2**32)
        return environment | {"PYTHONUNBUFFERED": "1"}

    def _of_the_run(self, start: Start) -> dict[str, Any]:
        """The fields of a `RunEnvironment`."""
        plan = self.plan
        return {
            "size": plan.nprocs,
            "address": start.seeds[0],
            "sequencer": plan.sequencer,
            "directory": str(self.directory),
            "seeds": start.seeds,
            "formed": frozenset(start.formed),
            "job": plan.identity,
            "launcher": os.getpid(),
            "seed": plan.seed,
            "restarts": start.restarts,
            "key_fd": self._key_fd if self._key_fd >= 0 else None,
            "stack": plan.stack,
            "layers": plan.layers,
            "node": start.node,
            "local_size": start.slots,
        }


def may_read_stdin() -> bool:
    """A shell's background job may not take what is typed for the shell."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:  # not a terminal
        return True


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def threads_per_rank(ranks: int) -> int:
    """The share of the cores that numeric libraries of one rank should use."""
    return max(1, cores() // ranks)
