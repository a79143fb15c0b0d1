"""G42: how soon a run over several hosts says its first line, beside one `ssh` to a host."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.campaign.bars import Bar, Figure, Scale
from tests.campaign.hosts import with_sshd
from tests.lib.ssh_hosts import NAMES, SshHosts, ssh_hosts

JOINS = """
print("a first line", flush=True)
import orcalike as orca
with orca.join() as group:
    if group.rank == 0:
        print("all are there", flush=True)
"""
TWO, SIXTEEN = "b:4,c:4", ",".join(NAMES[1:17])
WITHIN = {TWO: 1.2, SIXTEEN: 3.0}
"""Seconds that the first line of a run over these hosts may come later than `ssh` ends."""


def seconds_to(word: str, command: Sequence[str]) -> list[float]:
    """How long it takes a command to say its first line, a line with that word, and to end well."""
    begun = time.monotonic()
    taken: list[float] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not taken or word in line:
                taken.append(time.monotonic() - begun)
    if process.returncode:
        raise AssertionError(f"exit code {process.returncode}: {command}")
    return [*taken, time.monotonic() - begun]


def rounds(hosts: SshHosts, listed: str, times: int) -> list[float]:
    """Medians of `ssh b true`, and of a run over these hosts: to its first line, and to its group.

    One after the other in each round.
    """
    ssh = hosts.hosts["a"].command("ssh", "-F", str(hosts.directory / "config"), "b", "true")
    run = hosts.command("run", "-q", "-H", listed, hosts.write(JOINS))
    taken = [(seconds_to("", ssh)[0], *seconds_to("all are there", run)[:2]) for _ in range(times)]
    return [statistics.median(each) for each in zip(*taken, strict=True)]


def measure_starts(scale: Scale) -> list[Figure]:
    """G42: eight ranks on two hosts, and one on each of sixteen."""
    times = scale.of(5, 30)

    def measure(root: Path, folder: Path) -> Figure:
        said, figures, met = [], {}, True
        with ssh_hosts(len(NAMES), root, folder) as hosts:
            for listed, within in WITHIN.items():
                alone, first, group = rounds(hosts, listed, times)
                count = len(listed.split(","))
                said.append(f"{count} hosts {first:.2f} s, group {group:.2f} s, ssh {alone:.2f} s")
                figures[f"seconds of {count} hosts"] = first - alone
                met = met and first - alone <= within
        return Figure("G42", "; ".join(said), met, figures=figures)

    return with_sshd("G42", measure)


BARS = [Bar(("G42",), {"G42": "2 hosts 1.2 s after ssh, 16 hosts 3 s"}, measure_starts)]
