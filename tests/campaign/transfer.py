"""G15: a large state joins while others write; alone: `python -m tests.campaign.transfer MiB`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.campaign.bars import Bar, Figure, Scale
from tests.lib.command_lines import parser_of
from tests.lib.processes import Process

MEMBER = Path(__file__).with_name("transfer_member.py")
LARGE = 1_024
"""MiB of the state."""
P99, RATE = 0.050, 100.0
SPARE = 256
"""MiB that donor and joiner may take beyond the state itself."""


class Member(Process):
    """One process of it."""

    def __init__(self, role: str, address: str, size: int) -> None:
        command = [sys.executable, str(MEMBER), role, address, str(size)]
        super().__init__(command, None, stdin=subprocess.PIPE)


def measure(size: int) -> dict[str, Any]:
    """Join with a state of so many MiB while a member writes: what it took."""
    with tempfile.TemporaryDirectory() as directory:
        address = f"unix:{directory}/group"
        members = [Member("fill", address, size)]
        try:
            return _measure(members, address, size)
        finally:
            for member in members:
                member.kill()


def _measure(members: list[Member], address: str, size: int) -> dict[str, Any]:
    filler = members[0]
    filled = filler.next_fact()
    calm = Member("write", address, size)
    members.append(calm)
    calm.next_fact()
    time.sleep(3)
    calm.write()
    alone = calm.next_fact()
    calm.write()
    calm.process.wait()
    writer = Member("write", address, size)
    members.append(writer)
    writer.next_fact()
    joiner = Member("join", address, size)
    members.append(joiner)
    joined = joiner.next_fact()
    writer.write()
    written = writer.next_fact()
    filler.write()
    return {
        "MB/s": size * 1.048576 / joined["seconds"],
        "seconds": joined["seconds"],
        "complete": joined["parts"] == 16 * size,
        "p99": written["p99"],
        "longest": written["most"],
        "writes": written["writes"],
        "p99 alone": alone["p99"],
        "donor": filled["resident"],
        "donor's peak": filler.next_fact()["peak"],
        "joiner": joined["resident"],
        "joiner's peak": joined["peak"],
    }


def large_join(scale: Scale) -> list[Figure]:
    """G15 at this scale."""
    size = max(64, int(LARGE * min(1.0, scale.times)) // 64 * 64)
    found = measure(size)
    extra = found["donor's peak"] - found["donor"], found["joiner's peak"] - found["joiner"]
    met = found["complete"] and found["p99"] <= P99 and found["MB/s"] >= RATE
    text = (
        f"{size} MiB at {found['MB/s']:.0f} MB/s; writes p99 {found['p99'] * 1e3:.1f} ms "
        f"(alone {found['p99 alone'] * 1e3:.1f}), longest {found['longest'] * 1e3:.0f} ms; "
        f"extra memory {extra[0]} and {extra[1]} MiB"
    )
    figures = {name: float(value) for name, value in found.items()}
    return [Figure("G15", text, met and max(extra) <= SPARE, figures=figures)]


MUST = f"p99 <= {P99 * 1e3:.0f} ms, >= {RATE:.0f} MB/s, <= {SPARE} MiB extra"
BARS = [Bar(("G15",), {"G15": MUST}, large_join)]


if __name__ == "__main__":
    parser = parser_of("tests.campaign.transfer", __doc__)
    parser.add_argument("size", metavar="MiB", type=int)
    print(json.dumps(measure(parser.parse_args().size), indent=1))
