"""The runs of this user on this machine, for the verbs that speak to one of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from orcalike.cli.common import Refusal
from orcalike.launcher.control_socket import Answer, Busy, Stopped, ask
from orcalike.launcher.runtime_folders import job_directories
from orcalike.transport.wording import visible

#: How long a launcher may take to answer; it may be busy with much output.
ANSWER_SECONDS = 10.0
#: After how long a launcher that is asked by many is asked again.
AGAIN_SECONDS = 0.1
#: No run to talk to (docs/command-line.md).
UNREACHABLE = 69


class NoAnswer(Exception):
    """There is the run, and it does not answer; the text says so, and why."""


@dataclass(slots=True)
class Looked:
    """What one look at the runs has found."""

    answers: dict[Path, Answer] = field(default_factory=dict)
    """What each run says that answers, by its folder."""
    silent: list[str] = field(default_factory=list)
    """A sentence on each of the others."""

    @property
    def runs(self) -> list[Answer]:
        """The answers alone."""
        return list(self.answers.values())

    def say_silent(self) -> None:
        """Name the runs that do not answer, on stderr."""
        for text in self.silent:
            click.echo(f"orcalike: {text}", err=True)


def look(job: str | None, question: Answer) -> Looked:
    """Ask all runs, or the one of that name."""
    found = Looked()
    for directory in job_directories():
        if job not in (None, directory.name):
            continue
        try:
            if answer := ask_run(directory, question):
                found.answers[directory] = answer
        except NoAnswer as error:
            found.silent.append(str(error))
    return found


def find_run(job: str | None) -> Path:
    """The folder of the run that is meant: the one of that name, or the only one.

    Raises Refusal if there is none, or several, or if it does not answer.
    """
    found = look(job, {"do": "describe"})
    if len(found.answers) == 1 and not found.silent:
        return next(iter(found.answers))
    if found.answers:
        listed = "\n".join([*map(_line, found.runs), *(f"  {text}" for text in found.silent)])
        raise Refusal(f"several runs are under way; say which:\n{listed}")
    raise no_run(job, found)


def no_run(job: str | None, found: Looked) -> Refusal:
    """What to raise if no run answers."""
    if found.silent:
        return Refusal("\norcalike: ".join(found.silent), UNREACHABLE)
    return Refusal(
        f"there is no run {job!r} of yours" if job else "no program of yours is running",
        UNREACHABLE,
    )


def ask_run(directory: Path, question: Answer) -> Answer | None:
    """The answer of the run that has this folder; None if there is none, or it ends.

    Raises NoAnswer if it is there and does not answer.
    """
    until = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return ask(directory, question, max(AGAIN_SECONDS, until - time.monotonic()))
        except Stopped:
            raise NoAnswer(f"run {directory.name} does not answer: it is stopped") from None
        except (Busy, TimeoutError):
            if time.monotonic() >= until:
                raise NoAnswer(f"run {directory.name} does not answer: it is busy") from None
        except (OSError, ValueError):
            return None
        time.sleep(AGAIN_SECONDS)


def _line(about: dict[str, Any]) -> str:
    return f"  --job {about['job']}  -n {about['nprocs']} {visible(about['program'])}"
