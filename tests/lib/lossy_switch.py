"""Hosts on a switch that loses, delays and repeats frames, and that can be cut into parts.

Each host is a network namespace with a TAP device, 10.78.0.1, 10.78.0.2, ...; the switch is this
program, in a process of its own, which has the other ends. The kernels' TCP makes good what is lost,
late. It takes root, `ip` and /dev/net/tun; elsewhere a test is skipped, and says why.

    python -m tests.lib.lossy_switch SEED LOSS NAMESPACE...

reads lines from stdin: `cut 0,1 2,3,4` lets frames pass within each of these parts only, `heal` ends that.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import os
import random
import secrets
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.lib import network
from tests.lib.command_lines import parser_of
from tests.lib.network import ip

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x2, 0x1000
CLONE_NEWNET = 0x40000000
FRAME_MAX = 2048
BURST = 64
DELAY_LEAST, DELAY_MEAN = 0.0005, 0.001
"""Seconds that a frame takes."""
REPEATED = 0.01
QUEUED_MAX = 20_000
"""Frames under way; more are lost, as in any switch."""


class TapHost:
    """A host on the switch."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        """Its namespace."""
        self.address = f"10.78.0.{number}"

    def command(self, *arguments: str) -> list[str]:
        """What runs a program on this host; the process that is started becomes the program."""
        return ["ip", "netns", "exec", self.name, *arguments]


class LossySwitch:
    """The hosts, and the process that carries frames between them."""

    def __init__(self, count: int, seed: int, loss: float) -> None:
        name = f"o{secrets.token_hex(4)}"
        self.hosts = [TapHost(f"{name}{number}", number) for number in range(1, count + 1)]
        for host in self.hosts:
            ip("netns", "add", host.name)
        names = [host.name for host in self.hosts]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.lib.lossy_switch", str(seed), str(loss), *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            text=True,
        )
        assert self._process.stdout
        if self._process.stdout.readline() != "ready\n":
            raise OSError("the switch has not started")
        for host in self.hosts:
            ip("-n", host.name, "link", "set", "lo", "up")
            ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", "tap0")
            ip("-n", host.name, "link", "set", "tap0", "up")

    def cut(self, *parts: Sequence[int]) -> None:
        """Frames pass within each of these parts only: numbers of hosts, from 0 on."""
        self._say(" ".join(["cut", *(",".join(map(str, part)) for part in parts)]))

    def heal(self) -> None:
        """All reach each other again."""
        self._say("heal")

    def _say(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def close(self) -> list[int]:
        """End the switch and all processes on its hosts; returns which still ran."""
        left = []
        for host in self.hosts:
            with contextlib.suppress(OSError):
                left += [int(pid) for pid in ip("netns", "pids", host.name).split()]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if hasattr(self, "_process"):
            self._process.kill()
            self._process.communicate()
        for host in self.hosts:
            with contextlib.suppress(OSError):
                ip("netns", "del", host.name)
        return left


def why_not() -> str | None:
    """Why this process can make no such hosts; None if it can."""
    if (reason := network.why_not()) is not None:
        return reason
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return f"TAP devices cannot be made here: {error}"
    return None


@contextlib.contextmanager
def lossy_switch(count: int, seed: int, loss: float) -> Iterator[LossySwitch]:
    """So many hosts on one; skips the test if none can be made."""
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    switch = LossySwitch(count, seed, loss)
    try:
        yield switch
    finally:
        left = switch.close()
    assert not left, f"the test left processes on its hosts: {left}"


# The process of the switch.


def tap_in(namespace: str) -> int:
    """A new TAP device in a namespace, as a descriptor."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/var/run/netns/{namespace}", os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH14x", b"tap0", IFF_TAP | IFF_NO_PI))
        libc.setns(here, CLONE_NEWNET)
        return tap
    finally:
        os.close(here)
        os.close(there)


class Carrier:
    """Carries frames between the devices."""

    def __init__(self, taps: list[int], seed: int, loss: float) -> None:
        self.taps, self.loss = taps, loss
        self.rng = random.Random(seed)
        self.part = dict.fromkeys(range(len(taps)), 0)
        """In which part each host is."""
        self.queue: list[tuple[float, int, int, int, bytes]] = []
        self.count = 0
        self.rest = b""

    def run(self) -> None:
        """Until stdin ends."""
        while True:
            now = time.monotonic()
            while self.queue and self.queue[0][0] <= now:
                _, _, source, target, frame = heapq.heappop(self.queue)
                if self.part[source] == self.part[target]:
                    with contextlib.suppress(OSError):
                        os.write(self.taps[target], frame)
            wait = min(0.05, self.queue[0][0] - now) if self.queue else 0.05
            # A process of few files; and poll(2) waits for whole milliseconds.
            ready, _, _ = select.select([0, *self.taps], [], [], max(wait, 0.0))  # noqa: TID251
            for each in ready:
                if each:
                    self._take(self.taps.index(each))
                elif not self._obey():
                    return

    def _obey(self) -> bool:
        data = os.read(0, 65536)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.part = dict.fromkeys(self.part, 0)
            for number, part in enumerate(line.decode().split()[1:], 1):
                self.part |= dict.fromkeys(map(int, part.split(",")), number)
        return bool(data)

    def _take(self, source: int) -> None:
        for _ in range(BURST):
            try:
                frame = os.read(self.taps[source], FRAME_MAX)
            except OSError:
                return
            for target in range(len(self.taps)):
                lost = self.rng.random() < self.loss or len(self.queue) > QUEUED_MAX
                if target == source or lost or self.part[source] != self.part[target]:
                    continue
                for _ in range(2 if self.rng.random() < REPEATED else 1):
                    self.count += 1
                    delay = DELAY_LEAST + self.rng.expovariate(1 / DELAY_MEAN)
                    entry = (time.monotonic() + delay, self.count, source, target, frame)
                    heapq.heappush(self.queue, entry)


def main() -> None:
    """The switch."""
    parser = parser_of("tests.lib.lossy_switch", __doc__)
    parser.add_argument("seed", metavar="SEED", type=int)
    parser.add_argument("loss", metavar="LOSS", type=float)
    parser.add_argument("namespaces", metavar="NAMESPACE", nargs="+")
    options = parser.parse_args()
    taps = [tap_in(name) for name in options.namespaces]
    carrier = Carrier(taps, options.seed, options.loss)
    print("ready", flush=True)
    carrier.run()


if __name__ == "__main__":
    main()
