"""`orcalike top`: what the processes of running programs do, live."""

from __future__ import annotations

import os
import sys

import click

from orcalike.cli.common import Refusal
from orcalike.cli.runs import look, no_run
from orcalike.cli.watching import EACH_SECONDS, between_looks


@click.command(short_help="Show live what the processes of running programs do.")
@click.option("--job", metavar="ID", help="Which run; all of yours on this machine if left out.")
@click.option(
    "--each",
    type=between_looks,
    metavar="SECONDS",
    default=EACH_SECONDS,
    show_default=True,
    help="How long between two looks.",
)
def top(job: str | None, each: float) -> None:
    """Show the processes of your runs on this machine, again and again, on the whole terminal.

    \b
    q  quit        s  sort by the next column        p  pause, and go on

    \b
    WRITES/s   messages in a second: writes, and what the group itself does
    LAG        packets that another member has received already and this one not
    GUARDED    calls that wait there for their guards
    WAITS FOR  what the process's oldest waiting call waits for

    It ends with the programs. Where there is no terminal: orcalike status --watch.

    Exit codes: 0 left, 2 usage or no terminal, 69 no such run, or no answer.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refusal("top needs a terminal; elsewhere: orcalike status --watch")
    if (kind := os.environ.get("TERM", "")) in ("dumb", "unknown"):
        raise Refusal(
            f"top needs a terminal that moves its cursor, and TERM is {kind}; elsewhere: "
            "orcalike status --watch"
        )
    found = look(job, {"do": "status"})
    if not found.answers:
        raise no_run(job, found)
    from orcalike.cli.top_view import TopView  # rich is for this verb alone

    ended = TopView(lambda: look(job, {"do": "status"}), each).run()
    if ended:
        click.echo("orcalike: the program has ended", err=True)
