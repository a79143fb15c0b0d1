"""Hosts on one network: namespaces on a bridge, with addresses 10.77.0.1, 10.77.0.2, ... and fd77::1, ...

The bridge is in a namespace of its own, so nothing of the machine's own network is touched, and several
tests have the same addresses at once. It takes root and the program `ip`; elsewhere a test is skipped,
and says why.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence

import pytest

from tests.lib.processes import DEADLINE, output_of

SWITCH = "switch"


def ip(*arguments: str) -> str:
    """`ip` with these arguments; raises OSError if it fails."""
    done = subprocess.run(
        ["ip", *arguments], capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def why_not() -> str | None:
    """Why this process can make no hosts; None if it can."""
    if os.geteuid():
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need the program ip (iproute2)"
    probe = f"o{secrets.token_hex(4)}"
    try:
        ip("netns", "add", probe)
        ip("netns", "del", probe)
    except OSError as error:
        return f"network namespaces cannot be made here: {error}"
    return None


class Host:
    """One of them."""

    def __init__(self, network: Network, number: int) -> None:
        self.name = f"{network.name}{number}"
        """Its namespace."""
        self.address = f"10.77.0.{number}"
        self.address6 = f"fd77::{number:x}"
        self._port = f"v{number}"
        self._switch = f"{network.name}{SWITCH}"
        ip("netns", "add", self.name)
        ip("-n", self.name, "link", "set", "lo", "up")
        port = ("name", self._port, "netns", self._switch)
        ip("link", "add", "name", "eth0", "netns", self.name, "type", "veth", "peer", *port)
        ip("-n", self._switch, "link", "set", self._port, "master", "bridge", "up")
        self.add_address(f"{self.address}/24")
        self.add_address(f"{self.address6}/64")
        ip("-n", self.name, "link", "set", "eth0", "up")

    def add_address(self, address: str) -> None:
        """One more, with the length of its network: 10.77.0.9/24."""
        nodad = ("nodad",) if ":" in address else ()
        ip("-n", self.name, "address", "add", address, "dev", "eth0", *nodad)

    def command(self, *arguments: str) -> list[str]:
        """What runs a program on this host; the process that is started becomes the program."""
        return ["ip", "netns", "exec", self.name, *arguments]

    def run(self, *arguments: str) -> str:
        """The stdout of a program on this host, which must end well."""
        return output_of(*self.command(*arguments))

    def cut(self) -> None:
        """Pull its cable: nothing comes or goes, and no error is seen but silence."""
        ip("-n", self._switch, "link", "set", self._port, "nomaster")

    def mend(self) -> None:
        """Plug it in again."""
        ip("-n", self._switch, "link", "set", self._port, "master", "bridge")

    def down(self) -> None:
        """Have its interface down, as `ip link set down` does: its own kernel knows."""
        ip("-n", self.name, "link", "set", "eth0", "down")

    def up(self) -> None:
        """Have it up again; IPv6 addresses are gone meanwhile, and set anew."""
        ip("-n", self.name, "link", "set", "eth0", "up")
        with contextlib.suppress(OSError):  # the kernel was asked to keep it
            self.add_address(f"{self.address6}/64")

    def answer_only(self, other: Host, port: int) -> None:
        """Send by TCP to another host from this port only, which is all that a host behind a router has of others."""
        rule = ("-n", self.name, "rule", "add", "to", other.address, "ipproto", "tcp")
        ip(*rule, "sport", str(port), "lookup", "main", "priority", "10")
        ip(*rule, "unreachable", "priority", "20")

    def processes(self) -> list[int]:
        """Those that run on it."""
        return [int(pid) for pid in ip("netns", "pids", self.name).split()]


class Network:
    """Some hosts, that reach each other."""

    def __init__(self) -> None:
        self.name = f"o{secrets.token_hex(4)}"
        self.hosts: list[Host] = []
        switch = f"{self.name}{SWITCH}"
        ip("netns", "add", switch)
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")

    def add(self) -> Host:
        """One more host."""
        self.hosts.append(Host(self, len(self.hosts) + 1))
        return self.hosts[-1]

    def remove(self) -> list[int]:
        """End all processes on its hosts, and remove them; returns which processes still ran."""
        left = [pid for host in self.hosts for pid in host.processes()]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for name in ip("netns", "list").split():
            if name.startswith(self.name):
                ip("netns", "del", name)
        return left


@contextlib.contextmanager
def hosts(count: int) -> Iterator[Sequence[Host]]:
    """So many hosts; skips the test if none can be made. Fails if a process is left on one."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    network = Network()
    try:
        yield [network.add() for _ in range(count)]
    finally:
        left = network.remove()
    assert not left, f"the test left processes on its hosts: {left}"
