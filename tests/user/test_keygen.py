"""`orcalike keygen` as a user meets it: a file of keys is made, changed, and never shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orcalike.cli.verbs import cli
from orcalike.session.key_file import read


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration, which is this test's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "orcalike" / "key"


def keygen(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["keygen", *map(str, arguments)])


def ids(path: Path) -> list[str]:
    return [entry.key.id.hex() for entry in read(path)]


def test_a_key_is_made_for_its_owner_alone(home: Path) -> None:
    made = keygen()
    assert made.exit_code == 0
    ((key, day),) = read(home)
    assert made.output.splitlines() == [str(home), f"{key.id.hex()}  {day}  seals, opens"]
    assert home.stat().st_mode & 0o777 == 0o600
    assert home.parent.stat().st_mode & 0o777 == 0o700
    assert key.secret.hex() not in made.output


def test_a_key_that_is_there_is_not_written_over(home: Path) -> None:
    keygen()
    before = home.read_bytes()
    again = keygen()
    assert again.exit_code == 1
    assert again.output == f"Error: {home} is there already: add a key to it with --add\n"
    assert home.read_bytes() == before


def test_a_key_is_changed_step_by_step(tmp_path: Path) -> None:
    path = tmp_path / "cluster.key"
    keygen(path)
    (old,) = ids(path)
    assert keygen("--add", path).output.splitlines()[2].endswith("opens")
    assert ids(path)[0] == old
    new = ids(path)[1]
    assert keygen("--use", new[:8], path).exit_code == 0
    assert ids(path) == [new, old]
    assert keygen("--remove", old, path).exit_code == 0
    listed = keygen("--list", path)
    assert ids(path) == [new]
    assert listed.output.splitlines()[1].startswith(new)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--remove", "ID"), 1, "it is the only key: add another one first"),
        (("--use", "zz"), 1, "0 keys have an id that begins with 'zz'; there are "),
        (("--add", "--use", "a"), 2, "one of --add, --list, --use and --remove at a time"),
    ],
)
def test_what_cannot_be_done(home: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    keygen()
    if arguments[0] == "--remove":
        arguments = ("--remove", ids(home)[0])
    before = home.read_bytes()
    result = keygen(*arguments)
    assert result.exit_code == code
    assert words in result.output
    assert home.read_bytes() == before


def test_a_file_that_is_not_there_or_open_to_others(tmp_path: Path, home: Path) -> None:
    assert "cannot be read: No such file" in keygen("--list", tmp_path / "none").output
    keygen()
    for mode in (0o604, 0o660):  # root may have one that a group of its own reads
        home.chmod(mode)
        assert "is open to others: chmod 600 it" in keygen("--add").output


def test_the_bound_on_keys(home: Path) -> None:
    keygen()
    for _ in range(15):
        assert keygen("--add").exit_code == 0
    full = keygen("--add")
    assert full.exit_code == 1
    assert "16 keys are the most: remove one first" in full.output
    assert len(ids(home)) == 16
