"""`orcalike objects`: the shared objects of running programs."""

from __future__ import annotations

from typing import Any

import click

from orcalike.cli.common import echo_json, echo_table
from orcalike.cli.watching import watch_option, watch_runs
from orcalike.launch_protocol.descriptions import OBJECTS_MAX
from orcalike.transport.wording import visible

_HEAD = ("NAME", "CLASS", "GROUP", "RES", "REPLICAS", "BLOCKED", "QUEUED")


@click.command(short_help="Show the shared objects of running programs.")
@click.option("--job", metavar="ID", help="Which run; all of yours on this machine if left out.")
@watch_option
@click.option("--json", "as_json", is_flag=True, help="As JSON: a list of objects.")
def objects(job: str | None, watch: float | None, as_json: bool) -> None:
    """Show the objects with a name, as the member has them that is furthest in the order.

    \b
    orcalike objects
    orcalike objects --watch --job 7f3a0c11
    orcalike objects --json | jq '.[] | select(.blocked > 0)'

    \b
    RES       the resilience degree of its class, or its group's
    REPLICAS  members that have one
    BLOCKED   calls that wait for its guards
    QUEUED    calls that wait for its mutex

    Reads and writes are not counted: it would cost each of them.

    Exit codes: 0 shown, 2 usage, 69 no such run, or no answer.
    """

    def show(runs: list[dict[str, Any]]) -> None:
        found = [entry for run in runs for entry in _entries(run)]
        if as_json:
            echo_json(found)
        elif found:
            echo_table(_HEAD, map(_row, found))
            _say_left_out(runs)
        else:
            click.echo("no object is shared")

    watch_runs(job, {"do": "status", "objects": True}, watch, show)


def _entries(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"job": run["job"], "group": group["name"], **entry}
        for group in run["groups"]
        for entry in group["objects"]
    ]


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    names = ("name", "class", "group", "resilience", "replicas", "blocked", "queued")
    shown = entry | {"class": entry["class"].rpartition(":")[2]}
    return tuple(str(shown[name]) for name in names)


def _say_left_out(runs: list[dict[str, Any]]) -> None:
    """A group's list has an end."""
    for run in runs:
        for group in run["groups"]:
            count = max((member["objects"] or 0 for member in group["members"]), default=0)
            if count > len(group["objects"]) > 0:
                left_out = count - len(group["objects"])
                click.echo(
                    f"group {visible(group['name'])}: {left_out} more (the first {OBJECTS_MAX} at most)"
                )
