"""What there is to measure without peers, part by part, and all of it in one table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from orcalike.bench import (
    busy,
    hosts,
    idle,
    invocations,
    keys,
    memory,
    resilience,
    ring,
    sequencer,
    startup,
    states,
    unpinned,
)
from orcalike.bench.harness import BenchError, Lacking
from orcalike.bench.table import Row

MEMBERS = (1, 2, 3, 4)
"""The sizes of group whose invocations are measured, if nothing else is asked for."""
MEMBERS_MAX = 32

PARTS = {
    "reads": "a read, and a method that is no operation, beside the same of a plain class",
    "waits": "a write that waits, beside a ping-pong in C and on uvloop",
    "bursts": "writes that do not wait, beside the plain call",
    "keys": "writes over TCP with a key, beside those without",
    "hosts": "a write over three hosts, beside a ping-pong in C and redis-py (root only)",
    "ring": "reads and writes over shared memory (RING), beside C, TOTAL and plain Python",
    "unpinned": "a write that waits, on all cores, over several starts",
    "sequencer": "a packet's cost at the process that orders, over its size",
    "resilience": "writes of degree 1, 2 and majority, beside degree 0",
    "states": "writes with digests of states compared, beside those without",
    "busy": "a member that computes: when it sees writes, and what the others feel",
    "startup": "import orcalike and orcalike run, beside the bare interpreter",
    "memory": "what a member takes, beside a bare interpreter",
    "idle": "wake-ups of members that have nothing to do, beside the heartbeats",
}
"""The parts by their names, in the order of the table."""

_BY_THEMSELVES: dict[str, Callable[[bool], list[Row]]] = {
    "keys": keys.measure,
    "ring": ring.measure,
    "unpinned": unpinned.measure,
    "sequencer": sequencer.measure,
    "states": states.measure,
    "busy": busy.measure,
    "startup": startup.measure,
    "memory": memory.measure,
    "idle": idle.measure,
}


def measure(
    parts: Collection[str],
    *,
    quick: bool,
    members: Sequence[int],
    progress: Callable[[str], None],
    lacking: Callable[[str], None],
) -> list[Row]:
    """The rows of these parts.

    `progress` is called with the part that is next; `lacking`, with what this machine has not, and so is left out.
    Raises BenchError if a program ends early, or nothing at all can be measured.
    """
    rows: list[Row] = []
    kinds = invocations.KINDS & set(parts)
    if kinds:
        progress(", ".join(part for part in PARTS if part in kinds))
        effort = invocations.QUICK if quick else invocations.FULL
        rows += invocations.measure(members, effort, kinds, lacking)
    for part in PARTS:
        if part not in parts or part in kinds:
            continue
        progress(part)
        try:
            rows += _measure_part(part, quick, lacking)
        except Lacking as error:
            lacking(f"no {part}: {error}")
    if not rows:
        raise BenchError("nothing of this can be measured here")
    return rows


def _measure_part(part: str, quick: bool, lacking: Callable[[str], None]) -> list[Row]:
    if part == "resilience":
        effort = resilience.QUICK if quick else resilience.FULL
        return resilience.degrees(3, effort, bursts=True)
    if part == "hosts":
        return hosts.measure(quick, lacking)
    return _BY_THEMSELVES[part](quick)


def parse_parts(words: Sequence[str]) -> list[str]:
    """The parts that `--only` names, with commas or one by one; all if it names none.

    Raises ValueError for what is no part.
    """
    names = [name for word in words for name in word.split(",") if name]
    for name in names:
        if name not in PARTS:
            raise ValueError(f"there is no part {name!r}: {', '.join(PARTS)}")
    return names or list(PARTS)
