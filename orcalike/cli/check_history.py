"""`orcalike check-history`: whether a group kept its promises, by what its members recorded."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orcalike.cli.common import Integer, Refusal

if TYPE_CHECKING:
    from orcalike.history_check.models import ModelOf


@click.command(short_help="Judge what the members of a group recorded.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--resilience",
    "-r",
    "degree",
    type=Integer(min=0),
    default=0,
    show_default=True,
    help="The degree of the writes.",
)
@click.option("--group", default="default", show_default=True, help="The name of the group.")
@click.option(
    "--models",
    metavar="MODULE:FUNCTION",
    help="Finds the model of an object by its name: results and guards are checked, too.",
)
def check_history(folder: Path, degree: int, group: str, models: str | None) -> None:
    """Check the histories in FOLDER, which a group's members wrote with ORCALIKE_HISTORY=FOLDER.

    The order, its durability, the views, the states of the replicas at one position and the reads
    of each member are held against the promises. A line for each violation says which invariant is
    broken, and at which member. Exit code 1 if there is any, 2 if the histories cannot be read.

    \b
    ORCALIKE_HISTORY=/tmp/h orcalike run -n 3 prog.py
    orcalike check-history /tmp/h --resilience 1
    """
    from orcalike.history_check.check import check_histories
    from orcalike.history_check.records import load

    if not folder.is_dir():
        raise Refusal(f"there is no folder {folder}")
    try:
        histories = load(folder, group)
    except ValueError as error:
        raise Refusal(str(error)) from None
    except OSError as error:
        raise Refusal(f"{error.filename or folder}: {error.strerror}") from None
    if not histories:
        raise Refusal(f"{folder} has no history of a group {group!r}")
    if models is None:
        verdict = check_histories(histories, degree)
    else:
        verdict = check_histories(histories, degree, _model_finder(models))
    click.echo(str(verdict))
    for violation in verdict.violations:
        click.echo(f"  {violation}")
    if verdict.violations:
        raise click.exceptions.Exit(1)


def _model_finder(text: str) -> ModelOf:
    module, _, name = text.partition(":")
    if not module or not name or module.startswith("."):
        raise Refusal(f"--models {text}: give MODULE:FUNCTION, such as tests.models:model_of")
    sys.path.insert(0, os.getcwd())
    try:
        found: ModelOf = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise Refusal(f"--models {text}: {error}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's module does
        raise Refusal(f"--models {text}: {type(error).__name__}: {error}") from None
    if not callable(found):
        raise Refusal(f"--models {text}: {name} is no function")
    return found
