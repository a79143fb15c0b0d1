"""The runs of this user on this machine, for the verbs that speak to one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orcalike.cli.common import Refusal
from orcalike.launcher.control_socket import Answer, ask
from orcalike.launcher.runtime_folders import job_directories

#: How long a launcher may take to answer; it may be busy with much output.
ANSWER_SECONDS = 10.0
#: No run to talk to (docs/command-line.md).
UNREACHABLE = 69


def answers(job: str | None, question: Answer) -> dict[Path, Answer]:
    """What each run says that answers, by its folder: all of them, or the one of that name."""
    found: dict[Path, Answer] = {}
    for directory in job_directories():
        if job in (None, directory.name) and (answer := ask_run(directory, question)):
            found[directory] = answer
    return found


def find_run(job: str | None) -> Path:
    """The folder of the run that is meant: the one of that name, or the only one.

    Raises Refusal if there is none, or several.
    """
    runs = answers(job, {"do": "describe"})
    if len(runs) == 1:
        return next(iter(runs))
    if runs:
        listed = "\n".join(map(_line, runs.values()))
        raise Refusal(f"several runs are under way; say which:\n{listed}")
    raise no_run(job)


def no_run(job: str | None) -> Refusal:
    """What to raise if no run answers."""
    return Refusal(
        f"there is no run {job!r} of yours" if job else "no program of yours is running",
        UNREACHABLE,
    )


def ask_run(directory: Path, question: Answer) -> Answer | None:
    """The answer of the run that has this folder; None if none comes."""
    try:
        return ask(directory, question, ANSWER_SECONDS)
    except (OSError, ValueError):
        return None


def _line(about: dict[str, Any]) -> str:
    return f"  --job {about['job']}  -n {about['nprocs']} {about['program']}"
