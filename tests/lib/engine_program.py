"""The program that tests run under each launcher, and what they compare: one text, whichever started it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from orcalike.session.key_file import draw, write
from tests.lib import warm

PROGRAM = """
import os
import sys

import orcalike as orca
from orcalike.objects import Counter

with orca.join() as group:
    total = group.share(Counter, "total")
    total.add(group.rank + 1)
    group.barrier()
    line = f"rank {group.rank} of {group.size}: {total.get()}\\n"
    print(line, end="", flush=True)  # in one piece: launchers put pieces of several ranks together
    group.barrier()
if group.rank == 1 and sys.argv[1:]:
    sys.exit(int(sys.argv[1]))
"""


def write_program(directory: Path, source: str = PROGRAM) -> str:
    """The program, in a file; returns its path."""
    path = directory / "prog.py"
    path.write_text(source)
    return str(path)


def make_key(directory: Path) -> dict[str, str]:
    """A file of keys; returns the variable that names it."""
    path = directory / "key"
    write(path, [draw()])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return {"ORCALIKE_KEY_FILE": str(path)}


def folders_of_jobs() -> list[Path]:
    """What jobs on this host have left behind, or have now."""
    return list(Path(os.environ["XDG_RUNTIME_DIR"]).glob("orcalike/w*"))


def lines_of(count: int) -> list[str]:
    """What so many ranks of it print, in order: `expected` asks `orcalike run`, which takes as long as the test."""
    total = count * (count + 1) // 2
    return [f"rank {rank} of {count}: {total}" for rank in range(count)]


def expected(program: str, count: int, *arguments: str) -> tuple[list[str], int]:
    """(lines in some order, exit code) under `orcalike run`."""
    options = ("--no-prefix", "-q", "-n", str(count))
    ended = warm.python("-m", "orcalike", "run", *options, program, *arguments)
    return sorted(ended.stdout.splitlines()), ended.returncode
