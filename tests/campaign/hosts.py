"""The bar of several hosts with a real sshd: G39, the examples while a host is cut off."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.campaign.bars import Bar, Figure, Scale
from tests.lib.cut_examples import EXAMPLES, HOSTS, cut_in_the_middle
from tests.lib.ssh_hosts import ssh_hosts, unpack_sshd


def cut_examples(times: int, folder: Path) -> list[str]:
    """Each example so many times, on one set of hosts, each of which is cut off in its turn."""
    root = unpack_sshd(folder)
    wrong: list[str] = []
    with ssh_hosts(1 + len(HOSTS), root, folder) as hosts:
        for number in range(times):
            for example in EXAMPLES.values():
                cut = HOSTS[number % len(HOSTS)]
                found = cut_in_the_middle(hosts, example, cut)
                wrong += [f"{example.name}, host {cut}: {each}" for each in found]
    return wrong


def measure_examples(scale: Scale) -> list[Figure]:
    """G39: the salesman, the shortest paths and the bank, each with a host that is cut off."""
    times = scale.of(1, 30)
    with tempfile.TemporaryDirectory(prefix="o", dir="/tmp") as folder:  # sockets: a short path
        try:
            wrong = cut_examples(times, Path(folder))
        except pytest.skip.Exception as why:
            return [Figure("G39", f"not measured: {why}", True)]
    text = f"{times * len(EXAMPLES)} runs with a cut, {len(wrong)} wrong"
    return [Figure("G39", text, not wrong, wrong)]


BARS = [
    Bar(("G39",), {"G39": "each result right, no promise broken"}, measure_examples),
]
