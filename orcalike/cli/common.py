"""What several verbs use: refusals in one line, durations, JSON."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from orcalike.runtime.durations import parse_duration
from orcalike.transport.wording import visible


class Refusal(click.ClickException):
    """Ends the command with one line on stderr and an exit code of docs/command-line.md."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]

    def show(self, file: Any = None) -> None:
        """Print the line."""
        click.echo(f"orcalike: {self.format_message()}", file=file, err=True)


class Integer(click.IntRange):
    """A number in a range; what is no number at all is called no integer, and no range."""

    name = "integer"


class OutputFile(click.Path):
    """A file that is written in the end: that it cannot be is said before the work."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; its folder is there, and takes a new file."""
        path = Path(str(super().convert(value, param, ctx)))
        folder = path.parent
        if not folder.is_dir():
            self.fail(f"there is no folder {folder}", param, ctx)
        if not path.exists() and not os.access(folder, os.W_OK | os.X_OK):
            self.fail(f"the folder {folder} takes no new file of yours", param, ctx)
        return path


def duration(text: str | float) -> float:
    """Seconds from `10s`, `500ms`, `5 minutes` or a bare number: an option's type.

    Raises click.BadParameter if it is none of these.
    """
    try:
        return parse_duration(str(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'tsp.py'?`, or nothing if no known name is near."""
    import difflib  # not at the top: most command lines are right

    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def echo_json(value: object) -> None:
    """Print a value as JSON, for programs to read, and on a terminal: what is not printable is escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    click.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def echo_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows in columns that are as wide as they must be, each in one line whatever the names in it are."""
    table = [head, *(tuple(map(visible, row)) for row in rows)]
    widths = [max(map(_columns, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (
            cell + " " * (width - _columns(cell)) for cell, width in zip(row, widths, strict=True)
        )
        click.echo("  ".join(cells).rstrip())


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes: wide letters two, marks on the letter before none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )
