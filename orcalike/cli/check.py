"""`orcalike check`: what is wrong with a program's shared classes, before anything of it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orcalike.cli.common import Refusal
from orcalike.transport.wording import counted

if TYPE_CHECKING:
    from orcalike.declare.program_check import Report


@click.command(short_help="Look for operations that would differ between replicas.")
@click.argument("programs", nargs=-1, required=True, type=click.Path(path_type=Path))
def check(programs: tuple[Path, ...]) -> None:
    """Print all that keeps the shared classes of PROGRAMS from being alike at each replica.

    Each line has file and line, what is wrong, and what to do about it; then come notes: what the check
    cannot know, or what is perhaps not meant. Of a program its imports, classes, functions and constants are loaded, and nothing
    else of it runs; the modules that it imports are imported.

    Exit code 1 if anything was found, 2 if a program is no Python or cannot be read.

    \b
    orcalike check prog.py
    """
    from orcalike.declare.program_check import check_program

    found = 0
    for program in programs:
        if not program.is_file():
            raise Refusal(f"there is no file {program}")
        try:
            report = check_program(program)
        except SyntaxError as error:
            line = f":{error.lineno}" if error.lineno else ""
            raise Refusal(f"{program}{line}: it is no Python: {error.msg}") from None
        except OSError as error:
            raise Refusal(f"{program}: {error.strerror}") from None
        for line in report.findings:
            click.echo(line)
        for line in report.notes:
            click.echo(f"{line} (note)")
        found += len(report.findings)
        click.echo(f"{program}: {_summary(report)}", err=True)
    if found:
        raise click.exceptions.Exit(1)


def _summary(report: Report) -> str:
    """What was looked at, and what came of it."""
    if report.declared == 1:
        looked_at = "1 shared class or atomic function"
    else:
        looked_at = f"{report.declared} shared classes and atomic functions"
    said = [
        counted(len(found), what)
        for found, what in ((report.findings, "fault"), (report.notes, "note"))
        if found
    ]
    return f"{looked_at}; {', '.join(said) or 'nothing found'}"
