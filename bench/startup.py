"""Measures what it costs to begin: `import orcalike`, and `orcalike run` of an empty program.

Both beside the bare interpreter with nothing to do, in interleaved rounds. What is checked is how much more it
takes, in time that passes: `orcalike run -n 4` starts six processes and ends them again. All runs
find byte code, as those of an installed package do, which the first round leaves in a folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orcalike.bench.harness import BenchError, interleave
from orcalike.bench.table import Bar, Row, compare, run_script, scaled

MEMBERS = 4

EXAMPLES = """\
examples:
  python -m orcalike.bench.startup             half a minute
  python -m orcalike.bench.startup --quick     a look at the rows; the figures mean little
"""


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    runs: int


FULL = Effort(rounds=25, runs=9)
QUICK = Effort(rounds=2, runs=1)


def timed(byte_code: Path, *command: str | Path) -> Callable[[], float]:
    """A round: the seconds from the start of a program to its end."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(byte_code)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def sample() -> float:
        began = time.monotonic()
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, check=False, env=environment)
        if ended.returncode:
            raise BenchError(f"{' '.join(map(str, command))}: exit code {ended.returncode}")
        return time.monotonic() - began

    return sample


def measure(quick: bool) -> list[Row]:
    """Both rows."""
    effort = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as folder:
        empty, byte_code = Path(folder) / "empty.py", Path(folder) / "byte_code"
        empty.touch()
        python = sys.executable
        run = [python, "-m", "orcalike", "run", "--quiet", "-n", str(MEMBERS)]
        imports = interleave(
            effort.rounds,
            {
                "import": timed(byte_code, python, "-c", "import orcalike"),
                "bare": timed(byte_code, python, "-c", ""),
            },
        )
        runs = interleave(
            effort.runs,
            {
                "run": timed(byte_code, *run, empty),
                "bare": timed(byte_code, python, empty),
            },
        )
    imported, bare = (scaled(samples, 1e3) for samples in imports.values())
    ran, empty_run = (scaled(samples, 1e3) for samples in runs.values())
    beside = "bare interpreter"
    return [
        compare("import orcalike", 1, "ms", imported, beside, bare, Bar(extra=80, extra_aim=40)),
        compare(
            "orcalike run, empty program", MEMBERS, "ms", ran, beside, empty_run,
            Bar(extra=700, extra_aim=400),
        ),
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    texts = (__doc__, EXAMPLES)
    return run_script("startup", texts, measure, time_limit=120, arguments=arguments)


if __name__ == "__main__":
    sys.exit(main())
