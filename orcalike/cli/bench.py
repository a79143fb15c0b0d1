"""`orcalike bench`: what things cost on this machine, each beside a limit of the same run."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

import click

from orcalike.cli.common import Integer, OutputFile, duration

MEMBERS_MAX = 32


class Parts(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Parts of the table, with commas between them."""

    name = "PARTS"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        """Their names; imports the measurements, which is why it is not done before."""
        from orcalike.bench.parts import parse_parts

        try:
            return parse_parts([str(value)])
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command(short_help="Measure what things cost on this machine.")
@click.option("--quick", is_flag=True, help="Few and short rounds: the figures mean little.")
@click.option(
    "--members",
    type=Integer(1, MEMBERS_MAX),
    multiple=True,
    metavar="N",
    help="A size of group whose reads and writes are measured; may be given again. Default: 1, 3.",
)
@click.option("--only", type=Parts(), multiple=True, help="These parts, with commas between them.")
@click.option("--json", "json_file", type=OutputFile(), help="Write rows and samples to this file.")
@click.option("--csv", "csv_file", type=OutputFile(), help="Write the table to this file.")
@click.option(
    "--timeout", type=duration, default="10m", show_default=True, help="Stop after DURATION."
)
def bench(
    quick: bool,
    members: tuple[int, ...],
    only: tuple[list[str], ...],
    json_file: Path | None,
    csv_file: Path | None,
    timeout: float,
) -> None:
    """Measure what reads, writes and members cost on this machine; some minutes.

    Each figure stands beside a limit that is measured in the same run, in interleaved rounds: plain
    Python, the shortest way in C, a bare interpreter. What is beside C needs a C compiler (CC, else
    cc), and is left out if there is none.

    \b
    orcalike bench
    orcalike bench --quick
    orcalike bench --only reads,waits --members 3
    orcalike bench --json now.json --csv now.csv

    \b
    Parts: reads, waits, bursts, keys, hosts, ring, unpinned, sequencer, resilience,
    states, busy, startup, memory, idle.

    \b
    Exit codes: 1 if a figure falls short of what it must be (never with --quick),
    or the time is over; 2 usage; 130 Ctrl-C, 143 SIGTERM.
    """
    from orcalike.bench import parts
    from orcalike.bench.table import Row, report

    wanted = [name for names in only for name in names] or list(parts.PARTS)
    options = Namespace(quick=quick, json=json_file, csv=csv_file, time_limit=max(1, int(timeout)))

    def say(line: str) -> None:
        click.echo(f"orcalike: {line}", err=True)

    def progress(part: str) -> None:
        if sys.stderr.isatty():
            say(f"{part} ...")

    def measure() -> list[Row]:
        return parts.measure(
            wanted, quick=quick, members=members or (1, 3), progress=progress, lacking=say
        )

    raise click.exceptions.Exit(report("orcalike", options, measure))
