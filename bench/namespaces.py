"""Hosts of a measurement: network namespaces of this machine, joined by a bridge with a veth pair each."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from orcalike.bench.harness import BenchError, Lacking

NETWORK = "10.199.77"


class Host:
    """One of them; its commands run in its namespace."""

    def __init__(self, namespace: str, address: str) -> None:
        self.namespace = namespace
        self.address = address

    def command(self, *words: object) -> list[str]:
        """A command, as it is run there."""
        return ["ip", "netns", "exec", self.namespace, *map(str, words)]


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """So many hosts on one network; nothing is left of them. Raises Lacking without root and ip."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise Lacking("network namespaces need root, and the command ip")
    mark = f"orcabench-{secrets.token_hex(3)}"
    bridge = f"{mark}-net"
    with ExitStack() as stack:
        found = []
        _add(bridge, stack)
        _ip("-n", bridge, "link", "add", "bridge", "type", "bridge")
        _ip("-n", bridge, "link", "set", "bridge", "up")
        for number in range(count):
            host = Host(f"{mark}-{number}", f"{NETWORK}.{number + 1}")
            _add(host.namespace, stack)
            _connect(host, bridge, number)
            found.append(host)
        yield found


def _add(namespace: str, stack: ExitStack) -> None:
    _ip("netns", "add", namespace)
    stack.callback(_ip, "netns", "delete", namespace)


def _connect(host: Host, bridge: str, number: int) -> None:
    inside, port = ("-n", host.namespace), f"port{number}"
    pair = ["type", "veth", "peer", "name", port, "netns", bridge]
    _ip(*inside, "link", "add", "eth0", *pair)
    _ip("-n", bridge, "link", "set", port, "master", "bridge", "up")
    _ip(*inside, "address", "add", f"{host.address}/24", "dev", "eth0")
    for name in ("lo", "eth0"):
        _ip(*inside, "link", "set", name, "up")


def _ip(*words: str) -> None:
    _run(["ip", *words])


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command)}: {done.stderr.strip()}")
