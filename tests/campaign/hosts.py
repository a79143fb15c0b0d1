"""The bars of several hosts with a real sshd: G38, what is left of runs, and G39, the examples when a host is cut off."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.campaign.bars import Bar, Figure, Scale
from tests.lib.broken_runs import VICTIMS, break_off
from tests.lib.cut_examples import EXAMPLES, HOSTS, cut_in_the_middle
from tests.lib.ssh_hosts import ssh_hosts, unpack_sshd

LOTS = 4
"""Networks at a time: most of it is waiting."""
DOWN = 60.0
"""Seconds that a cable is out."""
LEFT_WITHIN = 15.0
"""Seconds in which nothing may be left of a run."""


def with_sshd(goal: str, measure: Callable[[Path, Path], Figure]) -> list[Figure]:
    """What `measure` finds with sshd's folder and one of its own; what it takes may be missing here."""
    with tempfile.TemporaryDirectory(prefix="o", dir="/tmp") as folder:  # sockets: a short path
        try:
            return [measure(unpack_sshd(Path(folder)), Path(folder))]
        except pytest.skip.Exception as why:
            return [Figure(goal, f"not measured: {why}", True)]


def break_lot(victims: list[str], root: Path, folder: Path) -> tuple[list[float], list[str]]:
    """Break off one run after the other; how long each was seen, and what was wrong."""
    folder.mkdir()
    seconds: list[float] = []
    wrong: list[str] = []
    with ssh_hosts(3, root, folder) as hosts:
        for victim in victims:
            ended = break_off(hosts, victim, down=DOWN)
            seconds.append(ended.seconds)
            wrong += [f"{victim}: {each}" for each in ended.wrong]
            if ended.seconds > LEFT_WITHIN:
                wrong.append(f"{victim}: something was left for {ended.seconds:.1f} s")
    return seconds, wrong


def measure_ends(scale: Scale) -> list[Figure]:
    """G38: launcher, agent, ssh or sshd is killed, or a cable is out, in runs over two hosts."""
    times = scale.of(2, 100)
    victims = [victim for victim in reversed(VICTIMS) for _ in range(times)]  # cables to each lot

    def measure(root: Path, folder: Path) -> Figure:
        with ThreadPoolExecutor(LOTS) as pool:
            lots = pool.map(
                lambda lot: break_lot(victims[lot::LOTS], root, folder / str(lot)), range(LOTS)
            )
            found = list(lots)
        longest = max((second for seconds, _ in found for second in seconds), default=0.0)
        wrong = [each for _, wrong in found for each in wrong]
        text = f"{len(victims)} runs, nothing left after {longest:.1f} s, {len(wrong)} wrong"
        return Figure("G38", text, not wrong, wrong, {"seconds": longest})

    return with_sshd("G38", measure)


def measure_examples(scale: Scale) -> list[Figure]:
    """G39: the salesman, the shortest paths and the bank; each host is cut off in its turn."""
    times = scale.of(1, 30)

    def measure(root: Path, folder: Path) -> Figure:
        wrong: list[str] = []
        with ssh_hosts(1 + len(HOSTS), root, folder) as hosts:
            for number in range(times):
                cut = HOSTS[number % len(HOSTS)]
                for example in EXAMPLES.values():
                    found = cut_in_the_middle(hosts, example, cut)
                    wrong += [f"{example.name}, host {cut}: {each}" for each in found]
        text = f"{times * len(EXAMPLES)} runs with a cut, {len(wrong)} wrong"
        return Figure("G39", text, not wrong, wrong)

    return with_sshd("G39", measure)


BARS = [
    Bar(("G38",), {"G38": "5 harms, nothing left after 15 s"}, measure_ends),
    Bar(("G39",), {"G39": "each result right, no promise broken"}, measure_examples),
]
