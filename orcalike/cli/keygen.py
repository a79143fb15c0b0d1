"""`orcalike keygen`: the keys of a cluster, and how they are changed while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from orcalike.errors import OrcalikeError
from orcalike.session import key_file
from orcalike.session.key_file import Entry
from orcalike.transport.drivers.key_ring import KEYS_MAX


@click.command(short_help="Make or change the keys of a cluster.")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option(
    "--add", "what", flag_value="add", help="Add a new key, which opens and does not seal."
)
@click.option("--list", "what", flag_value="list", help="Show the keys' ids and days.")
@click.option("--use", metavar="ID", help="Seal with this key from now on.")
@click.option("--remove", metavar="ID", help="Open with this key no more.")
def keygen(path: Path | None, what: str | None, use: str | None, remove: str | None) -> None:
    """Make the file of keys that members of one cluster share, for TCP; no key is ever shown.

    PATH is the user's own file if it is left out, which every program of yours takes by itself:
    ~/.config/orcalike/key. Elsewhere: join(key=PATH), or ORCALIKE_KEY_FILE=PATH. The same file goes to each
    host, with mode 0600.

    To change the key while programs go on: --add here and copy the file to every host, then --use the
    new key and copy it again, then --remove the old one, and copy it once more. Each program takes the
    file anew when it makes a connection.

    \b
    orcalike keygen                    make the user's own file
    orcalike keygen cluster.key        make a file at another place
    orcalike keygen --add              a second key, which opens
    orcalike keygen --use 3f9c2a77     seal with it
    orcalike keygen --remove a1b2c3d4  the old one opens no more
    """
    path = path or _own_path()
    if sum(map(bool, (what, use, remove))) > 1:
        raise click.UsageError("one of --add, --list, --use and --remove at a time")
    try:
        if not (what or use or remove):
            if path.exists():
                raise click.ClickException(f"{path} is there already: add a key to it with --add")
            entries = [key_file.draw()]
        else:
            entries = _changed(key_file.read(path), what, use, remove)
        if what != "list":
            key_file.write(path, entries)
    except (OrcalikeError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None
    click.echo(str(path))
    for number, (key, made) in enumerate(entries):
        click.echo(
            f"{key.id.hex()}  {made or 'unknown day'}  {'opens' if number else 'seals, opens'}"
        )


def _own_path() -> Path:
    path = key_file.default_path()
    if path is None:
        raise click.UsageError("this user has no home directory: give PATH")
    return Path(path)


def _changed(
    entries: list[Entry], what: str | None, use: str | None, remove: str | None
) -> list[Entry]:
    """The keys as they are to be; raises ValueError if none has that id, or none would be left."""
    if what == "add":
        if len(entries) == KEYS_MAX:
            raise ValueError(f"{KEYS_MAX} keys are the most: remove one first")
        return [*entries, key_file.draw()]
    if use:
        chosen = _find(entries, use)
        return [chosen, *(entry for entry in entries if entry is not chosen)]
    if remove:
        chosen = _find(entries, remove)
        if len(entries) == 1:
            raise ValueError("it is the only key: add another one first")
        return [entry for entry in entries if entry is not chosen]
    return entries


def _find(entries: Sequence[Entry], begun: str) -> Entry:
    """The one key whose id begins so."""
    found = [entry for entry in entries if entry.key.id.hex().startswith(begun.lower())]
    if len(found) != 1:
        ids = ", ".join(entry.key.id.hex() for entry in entries)
        raise ValueError(
            f"{len(found)} keys have an id that begins with {begun!r}; there are {ids}"
        )
    return found[0]
