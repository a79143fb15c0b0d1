"""Measures writes over hosts: three network namespaces, a member in each, and a key.

The member that orders, the one that writes and one more are at hosts of their own, joined by veth pairs and
a bridge. Beside them, by the same way: a ping-pong in C, whose sequencer passes each message to two
others too, and redis-py with a server at the first host. All are pinned to one core. Needs root.
docs/performance.md says what the figures mean.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from orcalike.bench import keys
from orcalike.bench.harness import BenchError, Lacking, Program, interleave
from orcalike.bench.keys import FULL, MEMBERS, QUICK
from orcalike.bench.namespaces import Host, hosts
from orcalike.bench.pingpong import FRAME, compiled
from orcalike.bench.table import Row, compare, run_script, scaled

PORT = 7471
EXAMPLES = """\
examples:
  python -m orcalike.bench.hosts            the rows; about a minute, as root
  python -m orcalike.bench.hosts --quick    a look at them; the figures mean little
"""


def measure(quick: bool, lacking: Callable[[str], None] | None = None) -> list[Row]:
    """The rows; raises Lacking without root, a C compiler, or the package that encrypts.

    Without redis-py and a server there is no row beside them, which `lacking` is called with.
    """
    effort = QUICK if quick else FULL
    cores = os.sched_getaffinity(0)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pingpong = compiled(folder)
        key = stack.enter_context(keys.key_file())
        places = stack.enter_context(hosts(MEMBERS))
        members = stack.enter_context(
            keys.group(str(key), [host.command for host in places], places[0].address)
        )
        programs = [*members, *stack.enter_context(c_pingpong(pingpong, places))]
        measures = {
            "orcalike": lambda: float(members[1].ask(f"wait {effort.waits}")),
            "C": lambda: float(programs[4].ask(effort.waits)),
        }
        try:
            client = stack.enter_context(redis(places, folder))
            programs.append(client)
            measures["redis-py"] = lambda: float(client.ask(f"wait {effort.waits}"))
        except BenchError as error:
            (lacking or print)(f"nothing beside redis-py: {error}")
        for program in programs:
            program.run_on({max(cores)})
        taken = interleave(effort.rounds, measures)
        for program in programs:
            program.run_on(cores)
        bursts = interleave(
            effort.rounds, {"it": lambda: float(members[1].ask(f"burst {effort.bursts}"))}
        )["it"]
    ours = scaled(taken["orcalike"], 1e6)
    what = "write that waits, 3 hosts (veth), with a key"
    rows = [
        compare(what, MEMBERS, "us", ours, beside, scaled(taken[beside], 1e6))
        for beside in list(taken)[1:]
    ]
    rate = [1 / seconds for seconds in bursts]
    waiting = [1 / seconds for seconds in taken["orcalike"]]
    what = "writes that do not wait, 3 hosts (veth), with a key"
    return [*rows, compare(what, MEMBERS, "/s", rate, "those that wait", waiting)]


@contextmanager
def c_pingpong(pingpong: Path, places: Sequence[Host]) -> Iterator[list[Program]]:
    """The sequencer, and the two that are joined to it; the second program measures."""
    with ExitStack() as stack:
        order = places[0].command(pingpong, "order", PORT, 2, FRAME)
        programs = [stack.enter_context(Program(order))]
        programs[0].answer()
        for host, kind in zip(places[1:], ("measure", "follow"), strict=True):
            joined = host.command(pingpong, kind, places[0].address, PORT, FRAME)
            programs.append(stack.enter_context(Program(joined)))
        programs[1].ask(1)  # all are there
        yield programs


@contextmanager
def redis(places: Sequence[Host], folder: Path) -> Iterator[Program]:
    """The client at the second host of a server at the first; raises BenchError if either is missing."""
    if importlib.util.find_spec("orcalike.bench.peers") is None:
        raise Lacking("it is measured from a clone")
    from orcalike.bench.peers.catalogue import redis_lacks, redis_server

    if lacks := redis_lacks():
        raise Lacking(lacks)
    server = places[0].command(
        redis_server(), "--bind", places[0].address, "--port", PORT + 1, "--protected-mode", "no",
        "--save", "", "--appendonly", "no", "--dir", folder, "--logfile", folder / "redis.log",
    )  # fmt: skip
    client = [sys.executable, "-m", "orcalike.bench.peers.redis_client"]
    with (
        Program(server),
        Program(places[1].command(*client, places[0].address, PORT + 1)) as program,
    ):
        program.ask("wait 1")
        yield program


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    return run_script("hosts", (__doc__, EXAMPLES), measure, time_limit=300, arguments=arguments)


if __name__ == "__main__":
    sys.exit(main())
