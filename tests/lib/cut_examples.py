"""The examples over several hosts, one of which is cut off in the middle: the result, and the histories."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from orcalike.history_check.records import History, load
from tests.lib import warm
from tests.lib.processes import DEADLINE, until
from tests.lib.ssh_hosts import SshHosts

ROOT = Path(__file__).parents[2]
HOSTS = "bcd"
"""Where the ranks 0, 1 and 2 are; the launcher and the witness are on the host a."""


@dataclass(frozen=True)
class Example:
    """One of them, with what it must say."""

    name: str
    arguments: tuple[str, ...]
    begun: int
    """Bytes of a rank's history: it has done some of its work, and by far not all."""
    says: str
    each: bool
    """Whether each rank says so that comes to its end; else one does."""


def scattered(cities: int, optimum: int) -> str:
    """A TSPLIB file whose optimum is proven by `tests/user/held_karp.py`."""
    points = "\n".join(f"{i} {i * 7919 % 101} {i * 104729 % 97}" for i in range(1, cities + 1))
    return (
        f"NAME: scattered\nCOMMENT: optimum: {optimum}\nDIMENSION: {cities}\n"
        f"EDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n{points}\n"
    )


SCATTERED = scattered(13, 338)
PACED_BANK = """
import contextlib, os, pathlib, sys, time
sys.path.insert(0, {examples!r})
import bank
join, transfer, again = bank.orca.join, bank.transfer, pathlib.Path({again!r})
calls = 0
@contextlib.contextmanager
def noted():
    global group
    with join() as group:
        yield group
def paced(*arguments):
    global calls
    calls += 1
    if os.environ["ORCALIKE_RESTART_COUNT"] == "1":
        again.touch()
    elif len(group.view.replicas) == 3 and not again.exists():
        time.sleep(0.002)
    while calls == 500 and len(group.view.replicas) == 3 and not again.exists():
        time.sleep(0.01)
    while {restart} and calls == 700 and not again.exists():
        time.sleep(0.01)
    return transfer(*arguments)
bank.orca.join, bank.transfer = noted, paced
bank.main()
"""
"""The bank, which writes slowly until a rank is lost: none has come to its end by then.

If that one is started again, the others write a little without it, and then stop until it takes part.
"""
EXAMPLES = {
    example.name: example
    for example in (
        Example(
            "tsp",
            ("{tsp}",),
            100_000,
            r"length: 338\n(.*\n)+?.*check: ok, .* as the file tells",
            False,
        ),
        Example(
            "asp", ("--cities", "150"), 100_000, r"check: ok, equal to the serial answer", False
        ),
        Example("bank", ("--transfers", "3000"), 100_000, r"check: ok, 16000 in 16 accounts", True),
    )
}


def cut_in_the_middle(
    hosts: SshHosts, example: Example, cut: str, *, restart: bool = False
) -> list[str]:
    """Run an example on three hosts, and pull the cable of one; what was wrong.

    With `restart`, for the bank alone, its rank is started again on a spare host.
    """
    history = hosts.directory / f"history-{len(os.listdir(hosts.directory))}"
    history.mkdir()
    rank = HOSTS.index(cut)
    with _started(hosts, example, history, restart=restart) as run:
        _cut(hosts, cut, history, rank, example.begun)
        try:
            out, errors = run.communicate(timeout=DEADLINE)
        finally:
            hosts.hosts[cut].mend()
    wrong = _of_output(example, 2 + restart, out)
    if run.returncode:
        wrong.append(f"exit code {run.returncode}")
    if not re.search(rf"rank {rank} \(host {cut}, pid \d+\) was lost .*host {cut} is lost", errors):
        wrong.append(f"rank {rank} of host {cut} is not named as lost")
    wrong = wrong and [*wrong, out, errors]
    return wrong + _of_histories(history, rank, restart=restart)


def _started(
    hosts: SshHosts, example: Example, history: Path, *, restart: bool
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    tsp = hosts.directory / "scattered.tsp"
    tsp.write_text(SCATTERED)
    spare, option = (",localhost", ("--restart", "1")) if restart else ("", ("--keep-going",))
    program = ROOT / "examples" / f"{example.name}.py"
    if example.name == "bank":
        again, examples = f"{history}-again", str(program.parent)
        program = hosts.directory / "paced_bank.py"
        program.write_text(PACED_BANK.format(examples=examples, again=again, restart=restart))
    arguments = [each.format(tsp=tsp) for each in example.arguments]
    recorded = f"ORCALIKE_HISTORY={history}"
    where = f"{','.join(HOSTS)}{spare}"
    return hosts.started("-H", where, "-n", "3", *option, "-x", recorded, str(program), *arguments)


def _cut(hosts: SshHosts, cut: str, history: Path, rank: int, begun: int) -> None:
    """Pull the cable while the rank on that host has done a part of its work, and no more.

    It stands still until the cable is out: else it could come to its end meanwhile.
    """

    def recorded() -> list[Path]:
        return [path for path in history.glob(f"*-{rank}-*") if path.stat().st_size > begun]

    until(recorded, f"rank {rank} at work")
    with recorded()[0].open() as file:
        pid = json.loads(file.readline())["pid"]
    os.kill(pid, signal.SIGSTOP)
    hosts.hosts[cut].cut()
    os.kill(pid, signal.SIGCONT)


def _of_output(example: Example, ranks: int, out: str) -> list[str]:
    """Whether those that came to their end say that all is right."""
    times = len(re.findall(example.says, out))
    if times != (ranks if example.each else 1):
        return [f"{example.name} says {times} times that all is right"]
    return []


def _of_histories(folder: Path, lost: int, *, restart: bool) -> list[str]:
    """What `orcalike check-history` finds, and whether others went on without that rank."""
    checked = warm.python("-m", "orcalike", "check-history", folder)
    found = [checked.stdout + checked.stderr] if checked.returncode else []
    histories = load(folder)
    others = [each for each in histories if each.rank != lost]
    if not any(_went_on(each, {other.rank for other in others}) for each in others):
        found.append(f"no rank has written without rank {lost}: it was not cut off in the middle")
    lives = [each for each in histories if each.rank == lost]
    with_all = [each for each in lives if _went_on(each, set(range(len(HOSTS))))]
    if (len(lives), len(with_all)) != (1 + restart, 1 + restart):
        found.append(f"rank {lost}: {len(lives)} histories, {len(with_all)} with all others")
    return found


def _went_on(history: History, ranks: AbstractSet[int | None]) -> bool:
    """Whether this one has invoked something in a primary view of just these ranks."""
    so = False
    for record in history.of("view", "invoke"):
        if record["kind"] == "view":
            seen = {rank for _, rank, witness in record["members"] if not witness}
            so = record["primary"] and seen == ranks
        elif so:
            return True
    return False
