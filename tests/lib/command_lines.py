"""The command lines of tests' own programs that take seeds, or nothing: `--help` says what they do."""

from __future__ import annotations

import argparse


def ask_seeds(module: str, doc: str | None) -> list[int]:
    """The seeds that a program is to run."""
    parser = parser_of(module, doc)
    parser.add_argument("seeds", metavar="SEED", type=int, nargs="+")
    seeds: list[int] = parser.parse_args().seeds
    return seeds


def ask_nothing(module: str, doc: str | None) -> None:
    """A program that takes no arguments."""
    parser_of(module, doc).parse_args()


def parser_of(module: str, doc: str | None) -> argparse.ArgumentParser:
    """A parser that shows a module's docstring as it was written."""
    return argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
