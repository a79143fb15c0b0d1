"""`orcalike status`: how running programs stand."""

from __future__ import annotations

from typing import Any

import click

from orcalike.cli.common import echo_json, echo_table
from orcalike.cli.run_tables import (
    NOT_KNOWN,
    Rates,
    complaints,
    figure,
    memory_text,
    number_text,
    parts_of_run,
    percent_text,
    state_of,
    title_of_run,
    wait_of,
)
from orcalike.cli.watching import watch_option, watch_runs

_HEAD = ("RANK", "HOST", "PID", "STATE", "CPU", "RSS", "SENT", "LAG", "OBJECTS", "GUARDED")


@click.command(short_help="Show how running programs stand.")
@click.option("--job", metavar="ID", help="Which run; all of yours on this machine if left out.")
@watch_option
@click.option("--ring", is_flag=True, help="Show the orders in shared memory, too.")
@click.option("--json", "as_json", is_flag=True, help="As JSON: a list of runs.")
def status(job: str | None, watch: float | None, ring: bool, as_json: bool) -> None:
    """Show the members of each program that orcalike run has started here, and of its groups.

    The processes themselves are asked, so it works while a sequencer fails over, and says for which
    members a blocked group waits, and by which rule. A process that does not answer within a
    second has `no answer`.

    \b
    orcalike status
    orcalike status --watch
    orcalike status --watch 5 --job 7f3a0c11
    orcalike status --ring
    orcalike status --json | jq '.[0].groups[].sequencer'

    \b
    CPU        the share of a core since the last look; at the first, since the start
    SENT       messages of that member: its writes, and what the group itself does
    LAG        packets that another member has received already and this one not
    OBJECTS    shared objects with a name
    GUARDED    calls that wait there for their guards
    WAITS FOR  what the process's oldest waiting call waits for

    With --ring the memory of each order is read, on this machine, whether or not its members
    answer: the next slot, how far each member has applied and what it lacks, and which members
    are asleep until there is news, or need room before they can write.

    Exit codes: 0 shown, 2 usage, 69 no such run, or no answer.
    """
    rates = Rates()

    def show(runs: list[dict[str, Any]]) -> None:
        if ring:
            from orcalike.cli.rings import rings_of  # it maps memory; few ask for it

            runs = [{**run, "rings": rings_of(run)} for run in runs]
        if as_json:
            echo_json(runs)
            return
        rates.note(runs)
        for number, run in enumerate(runs):
            if number:
                click.echo()
            _show_run(run, rates)

    watch_runs(job, {"do": "status"}, watch, show)


def _show_run(run: dict[str, Any], rates: Rates) -> None:
    click.echo(title_of_run(run))
    for title, rows in parts_of_run(run):
        click.echo(title)
        table: list[tuple[str, ...]] = []
        for process, member in rows:
            table.append(_row(process, member, rates.cpu(run["job"], process["pid"])))
            table += [_forked_row(process, forked) for forked in process["forked"]]
        echo_table((*_HEAD, "WAITS FOR"), table)
    for group in run["groups"]:
        for line in complaints(group):
            click.echo(line)
    if "rings" in run:
        from orcalike.cli.rings import show_rings

        show_rings(run["rings"])


def _row(
    process: dict[str, Any], member: dict[str, Any] | None, cpu: float | None
) -> tuple[str, ...]:
    return (
        str(process["role"]),
        process["host"],
        str(process["pid"]),
        state_of(process, member),
        percent_text(cpu),
        memory_text(process["rss"]),
        *(number_text(figure(member, key)) for key in ("sent", "lag", "objects", "guarded")),
        wait_of(process),
    )


def _forked_row(process: dict[str, Any], forked: dict[str, Any]) -> tuple[str, ...]:
    """A process that `group.fork` has started there, of which its member tells."""
    rank = "?" if forked["rank"] is None else str(forked["rank"])
    state = f"forked by {process['role']}: {forked['function']}"
    return (rank, process["host"], str(forked["pid"]), state, *[NOT_KNOWN] * (len(_HEAD) - 3))
