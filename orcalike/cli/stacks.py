"""`orcalike stacks`: the layers there are, and whether a stack of them holds together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orcalike.cli.common import Refusal, echo_json, echo_table

if TYPE_CHECKING:
    from orcalike.transport.layers.base import Layer


@click.group(invoke_without_command=True, short_help="List the layers, check a stack.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def stacks(context: click.Context, as_json: bool) -> None:
    """List the layers of group communication, or check a stack of them.

    \b
    orcalike stacks
    orcalike stacks check 'PACK:XFER:TOTAL:MBRSHIP:COM:unix'
    """
    if context.invoked_subcommand is None:
        _list(as_json)


@stacks.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def list_layers(as_json: bool) -> None:
    """List the layers: what each promises, and what it needs from below."""
    _list(as_json)


@stacks.command("check")
@click.argument("stack")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def check(stack: str, as_json: bool) -> None:
    """Say whether STACK holds together, layers top first, and what can run on it.

    Exit code 1 if it does not hold together.
    """
    from orcalike.transport.errors import StackError
    from orcalike.transport.stacks import parse_stack

    try:
        layers = [str(layer) for layer in parse_stack(stack)]
    except StackError as error:
        if as_json:
            echo_json({"ok": False, "stack": stack, "error": str(error)})
            raise click.exceptions.Exit(1) from None
        raise Refusal(str(error), 1) from None
    runs = _what_runs(stack)
    if as_json:
        runs_json = {what: why is None for what, why in runs.items()}
        lacks = {what: why for what, why in runs.items() if why is not None}
        echo_json({"ok": True, "stack": stack, "layers": layers, "runs": runs_json, "lacks": lacks})
        return
    click.echo(f"ok  {':'.join(layers)}")
    for what, why in runs.items():
        click.echo(f"    {what}: {'yes' if why is None else f'no, {why}'}")


def _what_runs(stack: str) -> dict[str, str | None]:
    """What can stand on a stack: None, or why it cannot."""
    from orcalike.runtime.dispatch import Runtime
    from orcalike.session.message_inbox import Inbox
    from orcalike.transport.errors import StackError
    from orcalike.transport.stacks import parse_stack

    runs: dict[str, str | None] = {}
    uppers: dict[str, type[Layer]] = {"objects": Runtime, "messages": Inbox}
    for what, upper in uppers.items():
        try:
            parse_stack(stack, upper)
            runs[what] = None
        except StackError as error:
            runs[what] = str(error)
    return runs


def _list(as_json: bool) -> None:
    from orcalike.transport.stacks import layers

    if as_json:
        echo_json(
            [
                {
                    "name": layer.name,
                    "promises": sorted(layer.promises),
                    "needs": sorted(layer.needs),
                    "doc": layer.doc,
                }
                for layer in layers()
            ]
        )
        return
    echo_table(
        ("NAME", "PROMISES", "NEEDS", ""),
        (
            (
                layer.name,
                ", ".join(sorted(layer.promises)) or "-",
                ", ".join(sorted(layer.needs)) or "-",
                layer.doc.partition("\n")[0].removeprefix(f"{layer.name}: "),
            )
            for layer in layers()
        ),
    )
