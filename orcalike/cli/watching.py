"""Looking at runs once, or again and again: what `status` and `objects` have in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click

from orcalike.cli.common import duration
from orcalike.cli.runs import look, no_run
from orcalike.launcher.control_socket import Answer

#: Of `--watch`, if it does not say.
EACH_SECONDS = 1.0
#: Less than this between two looks costs the processes that are asked, and rates of so short a time say nothing.
EACH_SECONDS_MIN = 0.1
#: The longest sleep at a time.
SLEEP_SECONDS = 3600.0


def between_looks(text: str | float) -> float:
    """Seconds between two looks, an option's type; raises click.BadParameter if it is no duration, or too short a one."""
    seconds = duration(text)
    if seconds < EACH_SECONDS_MIN:
        raise click.BadParameter(f"{text!r}: {EACH_SECONDS_MIN:g} seconds at the least")
    return seconds


watch_option = click.option(
    "--watch",
    type=between_looks,
    metavar="[SECONDS]",
    is_flag=False,
    flag_value=EACH_SECONDS,
    help="Show it again each SECONDS (1 if left out), until Ctrl-C.",
)


def watch_runs(
    job: str | None,
    question: Answer,
    each: float | None,
    show: Callable[[list[dict[str, Any]]], None],
) -> None:
    """Show what the runs answer; with `each`, again after so many seconds, until they end or Ctrl-C.

    A run that does not answer is named on stderr. The screen is cleared between two looks if it is one. Raises Refusal if there is no run.
    """
    found = look(job, question)
    if not found.answers:
        raise no_run(job, found)
    try:
        show(found.runs)
        found.say_silent()
        while each is not None:
            _wait(each)
            found = look(job, question)
            if not (found.answers or found.silent):
                click.echo("orcalike: the program has ended", err=True)
                return
            click.clear()  # on a terminal only
            if found.answers:
                show(found.runs)
            found.say_silent()
    except KeyboardInterrupt:
        raise click.exceptions.Exit(0) from None


def _wait(seconds: float) -> None:
    """Sleep, in parts: Python takes no more than some 292 years at a time."""
    end = time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 0:
        time.sleep(min(rest, SLEEP_SECONDS))
