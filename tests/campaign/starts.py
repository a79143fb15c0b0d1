"""G40: how soon a run over several hosts says its first line, beside one `ssh` to a host."""

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
import orcalike as orca
with orca.join() as group:
    if group.rank == 0:
        print("all are there", flush=True)
"""
TWO, SIXTEEN = "b:4,c:4", ",".join(NAMES[1:17])
WITHIN = {TWO: 1.2, SIXTEEN: 3.0}
"""Seconds that a run over these hosts may take longer than `ssh`."""


def seconds_to_first_line(command: Sequence[str]) -> float:
    """How long it takes a command to say something, or to end well without a word."""
    begun = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        took = time.monotonic() - begun
        process.communicate()
    if process.returncode:
        raise AssertionError(f"exit code {process.returncode}: {command}")
    return took


def rounds(hosts: SshHosts, listed: str, times: int) -> tuple[float, float]:
    """Medians of `ssh b true`, and of a run over these hosts; one after the other in each round."""
    ssh = hosts.hosts["a"].command("ssh", "-F", str(hosts.directory / "config"), "b", "true")
    run = hosts.command("run", "-q", "-H", listed, hosts.write(JOINS))
    taken = [(seconds_to_first_line(ssh), seconds_to_first_line(run)) for _ in range(times)]
    alone, together = zip(*taken, strict=True)
    return statistics.median(alone), statistics.median(together)


def measure_starts(scale: Scale) -> list[Figure]:
    """G40: eight ranks on two hosts, and one on each of sixteen."""
    times = scale.of(5, 30)

    def measure(root: Path, folder: Path) -> Figure:
        said, figures, met = [], {}, True
        with ssh_hosts(len(NAMES), root, folder) as hosts:
            for listed, within in WITHIN.items():
                alone, together = rounds(hosts, listed, times)
                count = len(listed.split(","))
                said.append(f"{count} hosts {together:.2f} s (ssh: {alone:.2f} s)")
                figures[f"seconds of {count} hosts"] = together - alone
                met = met and together - alone <= within
        return Figure("G40", "; ".join(said), met, figures=figures)

    return with_sshd("G40", measure)


BARS = [Bar(("G40",), {"G40": "2 hosts 1.2 s after ssh, 16 hosts 3 s"}, measure_starts)]
