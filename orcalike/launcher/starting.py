"""Starting the processes of a run: on this host or on several, when all is there that they need; and again."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from orcalike.launch_protocol.control_lines import Role
from orcalike.launcher import outcome, remote_host
from orcalike.launcher.child import Child
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.hosts import Hosts
from orcalike.launcher.job import Job, check_tcp
from orcalike.launcher.local_host import LocalHost
from orcalike.launcher.placement import Place, Placement
from orcalike.launcher.process_table import ProcessTable
from orcalike.launcher.reaper import Reaper
from orcalike.launcher.remote_host import RemoteHost
from orcalike.launcher.run_keys import RunKey, key_of_run, new_key
from orcalike.launcher.signals import accept_sigusr1
from orcalike.launcher.template import LOAD_SECONDS, Template
from orcalike.launcher.timers import Timers

#: How long a process waits before it is started again, the first time and the next times.
PAUSES = (0.0, 0.5, 1.0, 2.0)


class Starting:
    """What a run has to start its processes with: its hosts, and what ranks of this one are forked from."""

    def __init__(
        self,
        job: Job,
        directory: Path,
        *,
        table: ProcessTable,
        selector: selectors.BaseSelector,
        timers: Timers,
        reaper: Reaper,
        notice: Callable[[str], None],
    ) -> None:
        self.on_started: Callable[[Role, Child], None] = lambda role, child: None
        """Called with each process that was started."""
        self.on_no_room: Callable[[OSError], None] = lambda error: None
        """Called if the system has no room for one; no others are started then."""
        self.on_not_connected: Callable[[LaunchError], None] = lambda error: None
        """Called if the hosts of the run cannot be had."""
        self.on_member_ended: Callable[[int, str], None] = lambda incarnation, host: None
        """Called when what a rank has started was this member, and was seen to end on that host."""
        self.hosts: Hosts | None = None
        """Of a run over several."""
        self.again: set[Role] = set()
        """The processes that are about to be started again."""
        self._job, self._options, self._directory = job, job.options, directory
        self._table, self._selector, self._timers = table, selector, timers
        self._reaper, self._notice = reaper, notice
        self._loading: Template | None = None
        self._is_over = False

    @property
    def connecting(self) -> bool:
        """Whether the hosts of the run, or what its ranks are forked from, are not there yet."""
        return self._loading is not None or (self.hosts is not None and self.hosts.connecting)

    def prepare(self) -> None:
        """Make what this host has for the run; `hosts` are all of them, if there are others."""
        options, plan = self._options, self._job.plan()
        key = RunKey(b"")
        if plan.scheme == "tcp":
            check_tcp("--tcp" if options.is_local else "-H")
            key = new_key()
            if options.via != "ssh" and not options.is_local:
                key = self._key_of_user()
        name = socket.gethostname()
        self.local = local = LocalHost(
            name, plan, self._directory, self._reaper, self._selector, key.secret
        )
        local.on_left = lambda text: self._notice(f"orcalike: {text}")
        if not options.is_local:
            self.hosts = Hosts(
                plan,
                options.hosts,
                local,
                key,
                via=options.via,
                interface=options.interface,
                remote_python=options.remote_python,
                selector=self._selector,
                timers=self._timers,
                reaper=self._reaper,
                notice=self._notice,
            )
            self.hosts.on_ready = self._start_all
            self.hosts.on_failed = self.on_not_connected
            self.hosts.on_lost = self._host_lost
            self.hosts.on_member_ended = self.on_member_ended
            if not options.quiet:
                self.hosts.on_slow = self._host_slow

    def _key_of_user(self) -> RunKey:
        """The run's key, drawn from one that all hosts have."""
        try:
            return key_of_run(self._job.identity)
        except ValueError as error:
            raise LaunchError(f"--via {self._options.via}: this host: {error}", 77) from None

    def begin(self) -> None:
        """Start all processes, or first connect the hosts that they are to be on."""
        if self.hosts is not None:
            self.hosts.connect()
        else:
            self._start_here()

    def give_up(self) -> None:
        """Start none any more."""
        self._is_over = True
        for role in self.again:
            self._timers.cancel(f"start {role}")
        self.again.clear()
        self._stop_loading()
        if self.connecting and self.hosts is not None:
            self.hosts.close()

    # On this host

    def _start_here(self) -> None:
        """Start all processes on this host: the ranks when what several have in common is loaded."""
        self._table.placement = self._all_here()
        self._loading = self.local.load_template(self._options.nprocs)
        if self._loading is not None:
            self._selector.register(self._loading, selectors.EVENT_READ, self._loaded)
            self._timers.at("load", LOAD_SECONDS, self._loaded)
        self._start_witness()
        if self._loading is None:
            self._start_ranks()

    def _all_here(self) -> Placement:
        """All processes are on this host."""
        roles: list[Role] = [None] if self._options.sequencer == "witness" else []
        roles += range(self._options.nprocs)
        places = {
            role: Place(0, role or 0, address)
            for role, address in zip(roles, self.local.reserve(roles), strict=True)
        }
        return Placement([self.local], places)

    def _loaded(self) -> None:
        self._stop_loading()
        self._start_ranks()

    def _stop_loading(self) -> None:
        if self._loading is not None:
            self._timers.cancel("load")
            self._selector.unregister(self._loading)
            self._loading = None

    # On several hosts

    def _start_all(self, placement: Placement) -> None:
        """Start the witness and all ranks, each at its place."""
        self._table.placement = placement
        self._start_witness()
        self._start_ranks()

    def _host_slow(self, host: RemoteHost) -> None:
        """It has not answered yet."""
        slow, end = remote_host.SLOW_SECONDS, remote_host.ANSWER_SECONDS
        self._notice(
            f"[orcalike] host {host.name} has not answered for {slow:g} s; it is given up after {end:g} s"
        )

    def _host_lost(self, host: RemoteHost, why: str) -> None:
        """Its processes have been reported as lost."""
        self._table.placement.lose(host)

    # Each process

    def _start_witness(self) -> None:
        if self._options.sequencer == "witness":
            self._start_each([None])

    def _start_ranks(self) -> None:
        if not self._is_over:
            self._start_each(range(self._options.nprocs))

    def _start_each(self, roles: Iterable[Role], restarts: int = 0) -> None:
        accept_sigusr1(False)
        try:
            for role in roles:
                self.on_started(role, self._table.start(role, restarts))
        except OSError as error:
            self.on_no_room(error)
        accept_sigusr1(True)

    def start_soon(self, role: Role, what: str, restarts: int, pause: float | None = None) -> None:
        """Start a rank or the witness again, after a pause that grows; `what` is how it ended."""
        if pause is None:
            pause = PAUSES[min(restarts, len(PAUSES) - 1)]
        self._notice(outcome.started_again(what, restarts, self._options.restart, pause))
        self.again.add(role)
        start = partial(self._start_again, role, restarts + 1)
        self._timers.at(f"start {role}", pause, start)

    def _start_again(self, role: Role, restarts: int) -> None:
        self.again.discard(role)
        self._start_each([role], restarts)
