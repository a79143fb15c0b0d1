"""Counts instructions with callgrind, and keeps figures to compare with."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FIGURES = Path(__file__).with_name("figures.json")
PLAIN = "plain call"
"""The operation that has nothing of orcalike: it tells one build of an interpreter from another."""
MARGIN = 0.05
"""So much more than the figure may be needed."""
SAME = 0.02
"""By so much the plain call may differ in the same build of the interpreter."""
SECONDS = 280
RUNS = 3
"""The two runs of a section, and one before them that fills what is filled once; and the rest."""
DUMPS = RUNS + 1
STARTS = """
#include <valgrind/callgrind.h>
void start_counting(void) { CALLGRIND_START_INSTRUMENTATION; }
"""
"""The workload calls this when all is imported: what comes before is not counted, and so runs four times faster."""
PADDING = 21
"""Variables of the environment by which each layout has more than the one before."""


class CannotCount(Exception):
    """There is no valgrind, or it does not work here."""


@dataclass(frozen=True)
class Counts:
    """What was counted in one build: instructions of one operation."""

    build: str
    operations: dict[str, float]


def count(layout: int = 0) -> Counts:
    """Run the workload in valgrind, some seconds; raises CannotCount.

    Each `layout` puts the interpreter's objects at other addresses, the same each time. In one of some
    seven, two names that a write looks up alternately share one place in the interpreter's cache of
    attributes, which depends on their addresses, and a write one by one takes 10 % more.
    """
    padding = {f"PADDING_{number}": "x" * 24 for number in range(PADDING * layout)}
    if shutil.which("valgrind") is None:
        raise CannotCount("valgrind is not installed")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        starts = _compiled(Path(folder) / "starts.so")
        ended = subprocess.run(
            ["valgrind", "--quiet", "--tool=callgrind", "--dump-before=getppid",
             f"--instr-atstart={'no' if starts else 'yes'}", f"--callgrind-out-file={out}",
             sys.executable, "-m", "tests.instructions.workload", *starts],
            capture_output=True, text=True, check=False, timeout=SECONDS,
            cwd=Path(__file__).parents[2], env={**os.environ, **padding, "PYTHONHASHSEED": "0"},
        )  # fmt: skip
        if ended.returncode:
            last = ended.stderr.strip().splitlines()[-1:]
            raise CannotCount(f"valgrind ended with {ended.returncode}: {''.join(last)}")
        first, *lines = ended.stdout.splitlines()
        dumps = [_total(out.with_name(f"out.{i + 1}")) for i in range(DUMPS * len(lines))]
    operations = {}
    for number, line in enumerate(lines):
        often, name = line.split(maxsplit=1)
        once, twice = dumps[DUMPS * number + 2 : DUMPS * number + 4]
        operations[name] = round((twice - once) / int(often), 1)
    return Counts(first.removeprefix("build "), operations)


def least(one: Counts, other: Counts) -> Counts:
    """The lower count of each operation: chance adds instructions, and never takes any away."""
    assert one.build == other.build
    lower = {name: min(found, other.operations[name]) for name, found in one.operations.items()}
    return Counts(one.build, lower)


def _compiled(library: Path) -> list[str]:
    """The library that starts to count; none if there is no compiler or no header: all is counted then."""
    command = [*shlex.split(os.environ.get("CC", "cc")), "-shared", "-fPIC", "-O1", "-x", "c", "-"]
    try:
        subprocess.run(
            [*command, "-o", str(library)], input=STARTS, text=True, check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        return []
    return [str(library)]


def _total(dump: Path) -> int:
    try:
        lines = dump.read_text().splitlines()
    except FileNotFoundError:
        raise CannotCount("valgrind does not see where a section ends") from None
    return next(int(line.split()[1]) for line in lines if line.startswith("totals:"))


def figures() -> dict[str, dict[str, float]]:
    """What was counted when the figures were last renewed, by build and operation."""
    return {build: dict(found) for build, found in json.loads(FIGURES.read_text()).items()}


def unknown(counts: Counts) -> str | None:
    """Why there are no figures for this build; None if there are."""
    known = figures()
    if counts.build not in known:
        return f"no figures for {counts.build}: there are some for {', '.join(known)}"
    expected, found = known[counts.build][PLAIN], counts.operations[PLAIN]
    if abs(found - expected) > SAME * expected:
        return (
            f"no figures for this build of {counts.build}: "
            f"a plain call takes {found:g} instructions, and {expected:g} where they were counted"
        )
    return None


def renew(counts: Counts) -> None:
    """Keep these counts as the figures of their build."""
    FIGURES.write_text(json.dumps({**figures(), counts.build: counts.operations}, indent=2) + "\n")
