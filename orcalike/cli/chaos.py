"""`orcalike chaos`: try the failure story on a running program."""

from __future__ import annotations

import click

from orcalike.cli.common import Refusal, duration
from orcalike.cli.runs import UNREACHABLE, NoAnswer, ask_run, find_run
from orcalike.launcher.control_socket import Answer


def _note_job(context: click.Context, parameter: click.Parameter, job: str | None) -> None:
    """The run that is meant is what the commands below get; it may be said before or behind their names."""
    if job is not None:
        context.obj = job


_job = click.option(
    "--job",
    metavar="ID",
    expose_value=False,
    callback=_note_job,
    help="Which run; needed only if several are under way.",
)


@click.group(short_help="Kill, pause or cut off members of a running program.")
@_job
def chaos() -> None:
    """Kill, pause or cut off members of a program that orcalike run has started.

    It is for your own runs on this machine, while they run. Start the program so that it can go on
    after a failure, and try:

    \b
    orcalike run -n 5 --keep-going --restart 3 prog.py
    orcalike chaos kill 2                       SIGKILL to rank 2
    orcalike chaos kill sequencer               to the member that orders now, if one does
    orcalike chaos pause 1 5s                   SIGSTOP, and SIGCONT after 5 s
    orcalike chaos partition 0,1,2/3,4 --for 10s
    orcalike chaos heal

    \b
    Exit codes: 0 done, 1 it could not be done, 2 usage, 69 no such run, or no answer.
    """


def parse_member(text: str) -> str | int:
    """A member, an argument's type: a rank, `sequencer` or `witness`.

    Raises click.BadParameter if it is none of these.
    """
    if text in ("sequencer", "witness"):
        return text
    if not text.isdecimal():
        raise click.BadParameter(f"{text!r} is not a rank, sequencer or witness")
    return int(text)


def parts(text: str) -> list[list[str | int]]:
    """The parts of a partition, an argument's type: `0,1/2,witness`.

    Raises click.BadParameter if it is none.
    """
    found: list[list[str | int]] = []
    for part in text.split("/"):
        names = [
            "witness" if name.strip() in ("w", "witness") else name for name in part.split(",")
        ]
        if not all(name == "witness" or name.strip().isdecimal() for name in names):
            raise click.BadParameter(f"{text!r} is not like 0,1/2 or 0,witness/1,2")
        found.append([name if name == "witness" else int(name) for name in names])
    if len(found) < 2:
        raise click.BadParameter(f"{text!r} has one part; two or more are cut apart: 0,1/2")
    return found


@chaos.command(short_help="Kill a member: RANK, sequencer or witness.")
@click.argument("member", metavar="RANK|sequencer|witness", type=parse_member)
@_job
@click.pass_obj
def kill(job: str | None, member: str | int) -> None:
    """Kill a process with SIGKILL; what it has started is left alone.

    There is no sequencer if the order is in shared memory, as in runs on one host.

    \b
    orcalike chaos kill 2
    orcalike chaos kill sequencer
    """
    _do(job, {"do": "kill", "member": member})


@chaos.command(short_help="Stop a member for some time.")
@click.argument("member", metavar="RANK|sequencer|witness", type=parse_member)
@click.argument("time", metavar="DURATION", type=duration)
@_job
@click.pass_obj
def pause(job: str | None, member: str | int, time: float) -> None:
    """Stop a process with SIGSTOP, and let it go on with SIGCONT after so long.

    The command returns when the process is stopped. Where the order is in shared memory the others
    go on without it only if it holds them up.

    \b
    orcalike chaos pause 1 5s
    orcalike chaos pause sequencer 300ms
    """
    _do(job, {"do": "pause", "member": member, "seconds": time})


@chaos.command(short_help="Cut the connections between parts of the program.")
@click.argument("parts", metavar="PARTS", type=parts)
@click.option("--for", "time", type=duration, metavar="DURATION", help="Heal after DURATION.")
@_job
@click.pass_obj
def partition(job: str | None, parts: list[list[str | int]], time: float | None) -> None:
    """Let nothing through between parts, such as 0,1/2: ranks 0 and 1, and rank 2.

    Ranks that are not named, the witness too, belong to the first part. It lasts until heal, or as long as
    --for says. Another partition takes its place.

    \b
    orcalike chaos partition 0,1/2
    orcalike chaos partition 0,1,witness/2,3 --for 10s
    """
    _do(job, {"do": "partition", "parts": parts, "seconds": time})


@chaos.command(short_help="End a partition.")
@_job
@click.pass_obj
def heal(job: str | None) -> None:
    """Let all members reach each other again."""
    _do(job, {"do": "heal"})


def _do(job: str | None, question: Answer) -> None:
    """Ask the run that is meant, and print its answer."""
    directory = find_run(job)
    try:
        answer = ask_run(directory, question)
    except NoAnswer as error:
        raise Refusal(str(error), UNREACHABLE) from None
    if answer is None:
        raise Refusal(f"run {directory.name} has ended", UNREACHABLE)
    if "done" not in answer:
        raise Refusal(str(answer.get("error", answer)), 1)
    click.echo(answer["done"])
