"""Shows how many instructions each operation takes, and renews the figures that tests compare with.

python -m tests.instructions             beside the figures
python -m tests.instructions --renew     after a change that is meant to cost, or saves
"""

from __future__ import annotations

import argparse
import sys

from tests.instructions.counting import CannotCount, count, figures, renew


def main() -> int:
    """Count, show, and renew if that is asked for; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--renew", action="store_true", help="keep these counts as the figures")
    options = parser.parse_args()
    try:
        counts = count()
    except CannotCount as error:
        print(error, file=sys.stderr)
        return 1
    known = figures().get(counts.build, {})
    print(counts.build)
    for name, found in counts.operations.items():
        change = f"{(found / known[name] - 1) * 100:+6.1f} %" if name in known else "   new"
        print(f"{name:<34}{found:>10.1f}{change}")
    if options.renew:
        renew(counts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
