"""What several verbs use: refusals in one line, durations, JSON."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from typing import Any

import click

_DURATION = re.compile(r"\s*(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-z]*)\s*")
_SECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}


class Refusal(click.ClickException):
    """Ends the command with one line on stderr and an exit code of USERS.md 2.6."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]

    def show(self, file: Any = None) -> None:
        """Print the line."""
        click.echo(f"orcalike: {self.format_message()}", file=file, err=True)


def duration(text: str | float) -> float:
    """Seconds from `10s`, `500ms`, `5 minutes` or a bare number: an option's type.

    Raises click.BadParameter where it is none of these.
    """
    match = _DURATION.fullmatch(str(text).lower())
    if match is None or match["unit"] not in _SECONDS:
        raise click.BadParameter(f"{text!r} is not a duration such as 500ms, 10s, 10m or 2h")
    return float(match["number"]) * _SECONDS[match["unit"]]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'tsp.py'?`, or nothing where no known name is near."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def echo_json(value: object) -> None:
    """Print a value as JSON, for programs to read."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def echo_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows in columns that are as wide as they must be."""
    table = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
