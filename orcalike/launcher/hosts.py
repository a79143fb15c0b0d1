"""The hosts of a run over several: connected, compared, and then where each process is.

First each host's agent is started, some at a time. Then what the hosts report is compared with what is
here: orcalike's version, Python's, the program's file. Then each host tries to reach the others. Only then processes start.
"""

from __future__ import annotations

import math
import selectors
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from orcalike._version import __version__
from orcalike.launch_protocol.control_lines import Role
from orcalike.launcher.child import Host
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.greeting import Assignment, HostReport
from orcalike.launcher.host_checks import cannot_start, compare, explain
from orcalike.launcher.host_list import ListedHost, fill
from orcalike.launcher.local_host import LocalHost
from orcalike.launcher.placement import Place, Placement
from orcalike.launcher.probes import NO_DATAGRAMS, PROBE_SECONDS, Door, Probes
from orcalike.launcher.reaper import Reaper
from orcalike.launcher.remote_command import Via, host_command, is_this_host
from orcalike.launcher.remote_host import LEASE, RemoteHost
from orcalike.launcher.run_keys import RunKey
from orcalike.launcher.run_plan import RunPlan
from orcalike.launcher.timers import Timers
from orcalike.session.host_address import own_addresses, own_host

#: How many connections are made at a time: sshd drops more at random (MaxStartups).
STARTS_MAX = 8
#: How often a connection is tried that sshd has dropped.
TRIES_MAX = 3
UNREACHABLE = 69
_SAY_WHICH = "say at which address others reach it: --interface NAME or NETWORK, or --advertise"
_LET_BOTH = "have the firewalls between them let both through, at all ports"


class Hosts:
    """All of them, until the run is over."""

    def __init__(
        self,
        plan: RunPlan,
        listed: Sequence[ListedHost],
        local: LocalHost,
        key: RunKey,
        *,
        via: Via,
        interface: str,
        remote_python: str,
        selector: selectors.BaseSelector,
        timers: Timers,
        reaper: Reaper,
        notice: Callable[[str], None],
    ) -> None:
        """`local` is the launcher's own host, whether it is listed or not."""
        self.plan, self.listed, self.local = plan, list(listed), local
        self.on_ready: Callable[[Placement], None] = lambda placement: None
        self.on_failed: Callable[[LaunchError], None] = lambda error: None
        self.on_lost: Callable[[RemoteHost, str], None] = lambda host, why: None
        self.on_slow: Callable[[RemoteHost], None] = lambda host: None
        self.on_member_ended: Callable[[int, str], None] = lambda incarnation, host: None
        self._selector, self._timers, self._notice = selector, timers, notice
        self._interface = interface
        self._counts = fill(self.listed, plan.nprocs)
        self._remotes: dict[int, RemoteHost] = {}
        for assignment in assignments(self.listed, plan, key, via, interface):
            host = self.listed[assignment.node]
            self._remotes[assignment.node] = RemoteHost(
                host.name,
                host_command(via, host, remote_python),
                assignment,
                self,
                selector=selector,
                timers=timers,
                reaper=reaper,
            )
        self._waiting = list(self._remotes.values())
        local.commands = self._commands
        self._unprobed: set[RemoteHost] = set()
        self._unprobed_here = False
        self._doors: list[Door] = []
        self._addresses: dict[int, tuple[str, ...]] = {}
        self._witness_address = ""
        self._reaches_witness = True
        """Whether all hosts reach the launcher's own."""
        self.connecting = True

    @property
    def closed(self) -> bool:
        """Whether no connection is left."""
        return not any(host.connected for host in self._remotes.values())

    def connect(self) -> None:
        """Begin; `on_ready` or `on_failed` is called once."""
        self._connect_some()

    def close(self) -> None:
        """Have all agents end."""
        self.connecting = False
        for host in self._remotes.values():
            if host.connected:
                host.close()

    def extend_leases(self, seconds: float) -> None:
        """Let the agents go on for so long with nothing received."""
        for host in self._remotes.values():
            host.extend_lease(seconds)

    def resume(self) -> None:
        """The launcher was stopped, and goes on."""
        for host in self._remotes.values():
            host.resume()

    # Connections

    def _connect_some(self) -> None:
        under_way = sum(h.connected and h.report is None for h in self._remotes.values())
        while self._waiting and under_way < STARTS_MAX:
            host = self._waiting.pop(0)
            try:
                host.connect()
            except OSError as error:
                self._fail(f"cannot reach host {host.name}: {cannot_start(host.command[0], error)}")
                return
            under_way += 1

    def _commands(self) -> set[int]:
        """What connects is no orphan."""
        return {host.pid for host in self._remotes.values() if host.connected}

    def ready(self, host: RemoteHost) -> None:
        """A host's agent has answered.

        What is wrong is said at once: an agent that cannot take part ends before the others answer.
        """
        if not self.connecting:
            return
        try:
            compare(self.plan, {host.name: _report(host)})
        except LaunchError as error:
            self._fail(str(error), error.code)
            return
        self._connect_some()
        if all(each.report for each in self._remotes.values()):
            self._open()

    def failed(self, host: RemoteHost, returncode: int, said: str) -> None:
        """No agent has answered."""
        if not self.connecting:
            return
        trouble, again = explain(host.name, host.command, returncode, said)
        if again and host.tries < TRIES_MAX:
            self._waiting.append(host)
            self._connect_some()
        else:
            self._fail(trouble)

    def slow(self, host: RemoteHost) -> None:
        """No agent has answered yet."""
        if self.connecting:
            self.on_slow(host)

    def member_ended(self, host: RemoteHost, incarnation: int) -> None:
        """A process that a rank has started, and that was this member, was seen to end."""
        self.on_member_ended(incarnation, host.name)

    def lost(self, host: RemoteHost, why: str) -> None:
        """Nothing more comes of a host."""
        if self.connecting:
            self._fail(f"host {host.name} is lost: {why}")
        else:
            self.on_lost(host, why)

    def said(self, host: RemoteHost, line: str) -> None:
        """An agent has printed something."""
        self._notice(f"[{host.name}] {line}")

    def _fail(self, text: str, code: int = UNREACHABLE) -> None:
        if self.connecting:
            self.connecting = False
            self.on_failed(LaunchError(text, code))

    # Addresses

    def _open(self) -> None:
        for node, host in self._remotes.items():
            self._addresses[node] = _report(host).addresses
        try:
            self._open_here()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._fail(
                f"this host has no address for the others: {why}; {_SAY_WHICH} localhost=ADDRESS"
            )
            return
        self._probe()

    def _open_here(self) -> None:
        """Choose this host's address towards the others, and keep addresses there."""
        towards = [_report(host).host for host in self._remotes.values()]
        advertised = [self.listed[node].advertise for node in self._here]
        self.local.own = own_host(
            advertise=advertised[0] if advertised else None,
            interface=self._interface or None,
            towards=towards,
        )
        for node, listed in enumerate(self.listed):
            if node not in self._remotes:
                self._addresses[node] = tuple(self.local.reserve(range(listed.slots)))
        self.local.load_template(sum(self.listed[node].slots for node in self._here))
        self._witness_address = self.local.reserve([None])[0]
        self._doors.append(Door(self._selector, self.local.own))

    @property
    def _here(self) -> list[int]:
        """The numbers of this host, if it has ranks."""
        return [node for node in range(len(self.listed)) if node not in self._remotes]

    def _probe(self) -> None:
        """Have each host try to reach all others, this one included."""
        there = [_report(host).door for host in self._remotes.values()]
        doors = [door.address for door in self._doors] + there
        self._unprobed = set(self._remotes.values())
        for host in self._remotes.values():
            host.probe(doors)
        if self._here:
            self._unprobed_here = True
            probes = Probes(self._selector)
            self._timers.at("probes", PROBE_SECONDS, partial(probes.expire, math.inf))
            probes.try_all(there, self._probed_here)

    def _probed_here(self, troubles: list[str]) -> None:
        """This host has tried to reach the others, as its ranks must."""
        self._timers.cancel("probes")
        self._unprobed_here = False
        for node, trouble in zip(self._remotes, troubles, strict=True):
            if trouble:
                self._unreachable("this host", node, trouble)
        self._place_if_probed()

    def probed(self, host: RemoteHost, troubles: list[str]) -> None:
        """A host has tried to reach the others."""
        if host not in self._unprobed or len(troubles) != 1 + len(self._remotes):
            return
        self._unprobed.discard(host)
        here, *others = troubles
        if here:
            self._reaches_witness = False
            if self._here:
                self._unreachable(f"host {host.name}", self._here[0], here)
        for node, trouble in zip(self._remotes, others, strict=True):
            if trouble:
                self._unreachable(f"host {host.name}", node, trouble)
        self._place_if_probed()

    def _unreachable(self, source: str, node: int, trouble: str) -> None:
        name = self.listed[node].name
        remote = self._remotes.get(node)
        target, address = "this host", self.local.own
        if remote is not None:
            target, address = f"host {name}", _report(remote).host
        first = sum(self._counts[:node])
        last = first + self._counts[node] - 1
        ranks = f"ranks {first} to {last}" if first < last else f"rank {first}"
        if last < first:
            ranks = "a spare host"
        remedy = _LET_BOTH if trouble == NO_DATAGRAMS else f"{_SAY_WHICH} {name}=ADDRESS"
        self._fail(f"{source} cannot reach {target} at {address} ({ranks}): {trouble}; {remedy}")

    def _place_if_probed(self) -> None:
        if self.connecting and not self._unprobed and not self._unprobed_here:
            self._place()

    # Places

    def _place(self) -> None:
        self.connecting = False
        for door in self._doors:
            door.close()
        hosts: list[Host] = [
            self._remotes.get(node, self.local) for node in range(len(self.listed))
        ]
        places: dict[Role, Place] = {}
        rank = 0
        for node, count in enumerate(self._counts):
            for slot in range(count):
                places[rank] = Place(node, slot, self._addresses[node][slot])
                rank += 1
        if self.plan.sequencer == "witness":
            if self._reaches_witness:
                places[None] = Place(len(hosts), 0, self._witness_address)
            else:
                first = next(iter(self._remotes))
                places[None] = Place(first, 0, self._addresses[first][-1])
        hosts.append(self.local)
        spare = {
            node: [
                Place(node, slot, self._addresses[node][slot])
                for slot in range(count, listed.slots)
            ]
            for node, (count, listed) in enumerate(zip(self._counts, self.listed, strict=True))
        }
        self.on_ready(Placement(hosts, places, spare))


def own_hosts() -> tuple[str, ...]:
    """This host's addresses, towards which others find theirs; the loopback interface's last."""
    hosts = [host for _, host in own_addresses()]
    return tuple(sorted(hosts, key=lambda host: host in ("127.0.0.1", "::1")))[:16]


def _report(host: RemoteHost) -> HostReport:
    assert host.report is not None
    return host.report


def assignments(
    listed: Sequence[ListedHost], plan: RunPlan, key: RunKey, via: Via, interface: str
) -> Iterator[Assignment]:
    """What the agent on each host but this one gets first."""
    towards = () if via == "ssh" else own_hosts()
    for node, host in enumerate(listed):
        if not is_this_host(host.name):
            yield Assignment(
                version=__version__,
                plan=plan,
                name=host.name,
                node=node,
                slots=host.slots,
                key=key.to_send,
                drawn_from=key.drawn_from,
                lease=LEASE,
                advertise=host.advertise,
                interface=interface,
                towards=towards,
            )
