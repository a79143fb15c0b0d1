"""The `orcalike` command. Each verb is a file here, read only when it is used."""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import click

from orcalike._version import __version__
from orcalike.cli.interrupt import INTERRUPTED, ended_at_once

#: Verb by verb: the module that has a command of the same name, with `_` for `-`.
VERBS = (
    *("run", "status", "objects", "top", "check", "chaos", "examples", "stacks", "doctor"),
    *("keygen", "slurm", "k8s", "simulate", "check-history", "bench"),
)


GARBAGE_MIN = 20_000
"""New objects until garbage is looked for: next to nothing of what a verb loads is any."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Why a disk takes no more."""


@contextlib.contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _end_without_output(error: OSError) -> NoReturn:
    """End the command, which cannot write what it prints."""
    from orcalike.launcher.outcome import OUTPUT_LOST

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python writes as it ends
    click.echo(f"orcalike: the output cannot be written: {error.strerror}", err=True)
    sys.exit(OUTPUT_LOST)


class Verbs(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, the most used first."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, or None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        name = cmd_name.replace("-", "_")
        with ended_at_once():
            command = getattr(importlib.import_module(f"orcalike.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """As click does it; Ctrl-C ends the command with 130."""
        with _ended_by_ctrl_c():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """As click does it; Ctrl-C ends the command with 130, also while the verb's modules are imported."""
        with _ended_by_ctrl_c():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, and say which verb was meant."""
        if args[0].endswith(".py"):
            ctx.fail(f"there is no command {args[0]!r}; to run it: orcalike run {args[0]}")
        if args[0] not in VERBS and args[0].replace("-", "").isalpha() and args[0][0] != "-":
            from orcalike.cli.common import did_you_mean

            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], VERBS)}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "ORCALIKE"},
)
@click.version_option(__version__, prog_name="orcalike", message="%(prog)s %(version)s")
def cli() -> None:
    """Share Python objects between processes: local reads, one order of writes.

    \b
    orcalike run -n 4 prog.py          run a program on 4 processes
    orcalike status                    how running programs stand
    orcalike check prog.py             look at its shared classes before anything runs
    orcalike examples run tsp -n 4     see it work
    orcalike keygen                    make the keys that TCP needs
    orcalike doctor                    look at what this machine offers
    """


def main() -> None:
    """Run the command of `sys.argv`."""
    gc.set_threshold(GARBAGE_MIN)
    try:
        cli(prog_name="orcalike")
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        _end_without_output(error)
    finally:
        gc.freeze()  # as Python ends it would go through all modules time and again
