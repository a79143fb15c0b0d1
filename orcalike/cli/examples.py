"""`orcalike examples`: the programs that come with orcalike."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import click

from orcalike.cli.common import Refusal, did_you_mean, echo_json, echo_table
from orcalike.cli.run import run_options, start

#: In a checkout a link to the folder at the top; in an installed wheel the files themselves.
FOLDER = Path(__file__).parent.parent / "examples"


@click.group(short_help="List, show and run the example programs.")
def examples() -> None:
    """Programs that come with orcalike, short enough to learn from.

    \b
    orcalike examples list
    orcalike examples run tsp -n 4
    orcalike examples show tsp | less
    """


@examples.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def list_examples(as_json: bool) -> None:
    """List the examples."""
    found = {name: _summary(path) for name, path in _programs().items()}
    if as_json:
        echo_json([{"name": name, "summary": summary} for name, summary in found.items()])
    else:
        echo_table(("NAME", "SUMMARY"), found.items())


@examples.command("show")
@click.argument("name")
def show(name: str) -> None:
    """Print the source of an example."""
    click.echo(_find(name).read_text(encoding="utf-8"), nl=False)


@examples.command(
    "run", context_settings={"ignore_unknown_options": True}, options_metavar="[OPTIONS]"
)
@run_options
@click.argument("name")
@click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
def run(name: str, arguments: tuple[str, ...], **options: Any) -> None:
    """Run an example, with the options of `orcalike run`.

    What is no option of `orcalike run` belongs to the example, and so does all that comes
    after `--`.

    \b
    orcalike examples run tsp -n 4
    orcalike examples run tsp -n 4 -- --help
    """
    start(str(_find(name)), arguments, module=False, **options)


def _programs() -> dict[str, Path]:
    """The files that can be run; the others are what these import."""
    return {
        path.stem: path
        for path in sorted(FOLDER.glob("*.py"))
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }


def _find(name: str) -> Path:
    programs = _programs()
    path = programs.get(name.removesuffix(".py"))
    if path is None:
        hint = did_you_mean(name, programs) or f"; there are {', '.join(programs) or 'none'}"
        raise Refusal(f"there is no example {name!r}{hint}")
    return path


def _summary(path: Path) -> str:
    """The first line of the program's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]
