"""`orcalike check`: what is wrong with a program's shared classes, before anything of it runs."""

from __future__ import annotations

from pathlib import Path

import click

from orcalike.cli.common import Refusal


@click.command(short_help="Look for operations that would differ between replicas.")
@click.argument("programs", nargs=-1, required=True, type=click.Path(path_type=Path))
def check(programs: tuple[Path, ...]) -> None:
    """Print all that keeps the shared classes of PROGRAMS from being alike at each replica.

    Each line has file and line, what is wrong, and what to do about it; then comes what the check
    cannot know. Of a program its imports, classes, functions and constants are loaded, and nothing
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
        known = f"{report.declared} shared classes and atomic functions"
        click.echo(
            f"{program}: {known}, {len(report.findings)} found, {len(report.notes)} not known",
            err=True,
        )
    if found:
        raise click.exceptions.Exit(1)
