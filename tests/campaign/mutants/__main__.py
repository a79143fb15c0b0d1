"""Plant mutants one by one and say which of them the tests notice: `make mutants`.

    python -m tests.campaign.mutants total/
    python -m tests.campaign.mutants clock --tests tests/unit tests/protocol

Exit code 1 if a mutant survives or could not be tried.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.campaign.mutants import load
from tests.campaign.mutants.campaign import Verdict, try_all


def show(verdict: Verdict) -> None:
    """Print one verdict."""
    print(f"{verdict.seconds:6.1f} s  {verdict.word:10} {verdict.mutant.name}", flush=True)
    for line in verdict.detail.splitlines():
        print(f"          {line}", flush=True)


def main() -> None:
    """Try the mutants that are asked for."""
    parser = argparse.ArgumentParser(prog="tests.campaign.mutants", description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="part of a name, file or promise")
    parser.add_argument("--tests", nargs="+", default=(), help="run these, not the mutants' own")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once")
    options = parser.parse_args()
    os.nice(10)
    with tempfile.TemporaryDirectory(prefix="orcalike-mutants-") as folder:
        verdicts = try_all(
            load(options.pattern), Path(folder), jobs=options.jobs, tests=options.tests, tell=show
        )
    words = [verdict.word for verdict in verdicts]
    print(", ".join(f"{words.count(word)} {word}" for word in sorted(set(words))) or "no mutants")
    sys.exit(not all(verdict.good for verdict in verdicts))


if __name__ == "__main__":
    main()
