"""`orcalike status`: how running programs stand."""

from __future__ import annotations

import time
from typing import Any

import click

from orcalike.cli.common import echo_json, echo_table
from orcalike.cli.runs import answers, no_run
from orcalike.launcher.control_socket import Answer
from orcalike.transport.wording import counted, listed

_HEAD = ("RANK", "HOST", "PID", "STATE", "CPU", "RSS", "SENT", "LAG", "OBJECTS", "GUARDED")
_STATES = {"in": "member", "joining": "joining", "blocked": "blocked", "lacking": "waits"}
#: Of `--watch`.
EACH_SECONDS = 1.0


@click.command(short_help="Show how running programs stand.")
@click.option("--job", metavar="ID", help="Which run; all of yours on this machine if left out.")
@click.option("--watch", is_flag=True, help="Show it again each second, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="As JSON: a list of runs.")
def status(job: str | None, watch: bool, as_json: bool) -> None:
    """Show the members of each program that orcalike run has started here, and of its groups.

    The processes themselves are asked, so it works while a sequencer fails over, and says for which
    members a blocked group waits, and by which rule. A process that does not answer within a
    second has `no answer`.

    \b
    orcalike status
    orcalike status --watch
    orcalike status --json | jq '.[0].groups[].sequencer'

    \b
    SENT     messages of that member: its writes, and what the group itself does
    LAG      packets that another member has received already and this one not
    OBJECTS  shared objects with a name
    GUARDED  calls that wait there for their guards

    Exit codes: 0 shown, 2 usage, 69 no such run.
    """
    try:
        _show(job, as_json)
        while watch:
            time.sleep(EACH_SECONDS)
            _show(job, as_json, clear=True)
    except KeyboardInterrupt:
        raise click.exceptions.Exit(0) from None


def _show(job: str | None, as_json: bool, clear: bool = False) -> None:
    """One picture; raises Refusal if there is no run."""
    runs = list(answers(job, {"do": "status"}).values())
    if not runs:
        raise no_run(job)
    if as_json:
        echo_json(runs)
        return
    if clear:
        click.clear()  # on a terminal only
    for number, run in enumerate(runs):
        if number:
            click.echo()
        _show_run(run)


def _show_run(run: Answer) -> None:
    parts = [
        f"job {run['job']}",
        run["program"],
        f"up {_time(run['up_seconds'])}",
        counted(run["nprocs"], "rank"),
    ]
    if run["ended"]:
        parts.append(f"ended: {listed(run['ended'])}")
    click.echo(" · ".join(parts))
    processes = {process["role"]: process for process in run["processes"]}
    in_groups = {member["role"] for group in run["groups"] for member in group["members"]}
    for group in run["groups"]:
        click.echo(_title(group))
        echo_table(_HEAD, [_row(member, processes) for member in group["members"]])
        for line in dict.fromkeys(map(_waits, group["members"])):
            if line:
                click.echo(line)
    outside = [str(role) for role in processes if role not in in_groups]
    if outside:
        click.echo(f"in no group: {listed(outside)}")


def _title(group: dict[str, Any]) -> str:
    views = [member["view"] for member in group["members"] if member["view"]]
    sequencer = group["sequencer"]
    orders = f"rank {sequencer}" if isinstance(sequencer, int) else sequencer or "none now"
    return f"group {group['name']} · view {max(views, default='?')} · sequencer: {orders}"


def _row(member: dict[str, Any], processes: dict[Any, dict[str, Any]]) -> tuple[str, ...]:
    process = processes.get(member["role"], {})
    silent = member["next"] is None and member["state"] != "joining"
    return (
        str(member["role"]),
        process.get("host", "-"),
        str(process.get("pid", "-")),
        "no answer" if silent else _STATES[member["state"]],
        "-" if process.get("cpu_seconds") is None else f"{process['cpu_seconds']:.1f}s",
        "-" if process.get("rss") is None else f"{process['rss'] / (1 << 20):.0f}M",
        *(
            "-" if member[key] is None else str(member[key])
            for key in ("sent", "lag", "objects", "waiting")
        ),
    )


def _waits(member: dict[str, Any]) -> str:
    """What a member waits for; "" for nothing."""
    if member["state"] == "blocked":
        return f"blocked: waits for {listed(member['waits_for']) or 'others'}: {member['rule']}"
    return f"waits: {member['rule']}" if member["state"] == "lacking" else ""


def _time(seconds: float) -> str:
    hours, minutes = int(seconds // 3600), int(seconds // 60 % 60)
    return f"{hours}:{minutes:02}:{int(seconds % 60):02}"
