"""`orcalike check-history`: real members record, and the command checks what they recorded."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.lib.warm import WarmCli, python

PROGRAM = """
import orcalike as orca
from orcalike.objects import Counter

with orca.join() as group:
    hits = group.share(Counter, "hits")
    for _ in range(20):
        hits.add()
        hits.value
    group.barrier(timeout=100)
"""


def check_history(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command, as a shell would run it."""
    return python("-m", "orcalike", "check-history", *arguments, cwd=cwd)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a run of two ranks has recorded."""
    cli, folder = WarmCli(tmp_path), tmp_path / "recorded"
    recording = os.environ | {"ORCALIKE_HISTORY": str(folder)}
    run = cli.run("-n2", cli.write(PROGRAM), env=recording)
    assert run.returncode == 0, run.stderr
    return folder


def test_a_good_run_is_found_good(folder: Path) -> None:
    ended = check_history(str(folder))
    assert (ended.returncode, ended.stderr) == (0, "")
    counted = re.fullmatch(r"2 members, (\d+) messages, (\d+) acknowledged: ok\n", ended.stdout)
    assert counted is not None, ended.stdout
    assert min(map(int, counted.groups())) >= 40


def test_a_write_that_is_missing_at_one_member_is_found(folder: Path) -> None:
    """A delivery is taken out of what one member recorded."""
    path = next(folder.glob("default-1-*.jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    deliveries = [at for at, line in enumerate(lines) if json.loads(line)["kind"] == "deliver"]
    del lines[deliveries[len(deliveries) // 2]]
    path.write_text("".join(lines))
    ended = check_history(str(folder))
    assert ended.returncode == 1
    assert re.search(r": [1-9]\d* violations?\n", ended.stdout)
    assert "I2 at " in ended.stdout


def test_what_is_no_history_is_refused(tmp_path: Path) -> None:
    for arguments, why in (
        ([str(tmp_path / "none")], "there is no folder"),
        ([str(tmp_path)], "has no history of a group 'default'"),
    ):
        ended = check_history(*arguments)
        assert ended.returncode == 2
        assert why in ended.stderr


MEMBER = '{"kind": "member", "t": 1, "group": "default", "rank": 0, "incarnation": "ab"}\n'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (MEMBER + '{"kind\n{}\n', 2),
        (MEMBER + "[1]\n", 2),
        (MEMBER + '{"t": 1}\n', 2),
        (MEMBER + '{"kind": 3}\n', 2),
        ('{"kind": "member"}\n', 1),
        ("[" * 100_000 + "\n", 1),
        (MEMBER + '{"kind": "ok", "t": 2}\n', 2),
        (MEMBER + '{"kind": "ok", "t": null, "ticket": 1}\n', 2),
        (MEMBER + '{"kind": "exit", "t": 2, "why": 3}\n', 2),
        (MEMBER + '{"kind": "view", "t": 2, "identity": [1], "members": []}\n', 2),
    ],
    ids=["cut", "list", "no kind", "kind", "member", "deep", "ticket", "time", "why", "view"],
)
def test_a_line_that_is_no_record(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "default-0-ab.jsonl"
    path.write_text(text)
    ended = check_history(str(tmp_path))
    assert (ended.returncode, ended.stderr) == (2, f"orcalike: {path}:{line}: no record\n")


def test_a_history_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "default-0-ab.jsonl"
    path.mkdir()
    ended = check_history(str(tmp_path))
    assert (ended.returncode, ended.stderr) == (2, f"orcalike: {path}: Is a directory\n")


def test_a_group_with_a_long_name_is_found(tmp_path: Path) -> None:
    """As it stands in a URL the name is longer than that of a file can be."""
    group, cli, folder = "日" * 66, WarmCli(tmp_path), tmp_path / "recorded"
    program = cli.write(
        f"import orcalike as orca\nwith orca.join({group!r}) as group: group.barrier()"
    )
    ended = cli.run("-n2", program, env=os.environ | {"ORCALIKE_HISTORY": str(folder)})
    assert ended.returncode == 0, ended.stderr
    assert check_history(str(folder), "--group", group).stdout.startswith("2 members, ")
    assert check_history(str(folder), "--group", group[:-1]).returncode == 2


@pytest.mark.parametrize("group", ["/x", "a/b", "**", "[a]", "*"])
def test_a_group_with_any_name_is_found(tmp_path: Path, group: str) -> None:
    """Its files have its name as it stands in a URL; a group whose name begins alike is another one."""
    for name, rank in ((group, 0), (group + "-0", 1), ("default", 2), ("[a", 3)):
        said = json.loads(MEMBER) | {"group": name, "rank": rank}
        path = tmp_path / f"{quote(name, safe='')}-{rank}-ab.jsonl"
        path.write_text(json.dumps(said) + "\n")
    ended = check_history(str(tmp_path), "--group", group)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "1 member, 0 messages, 0 acknowledged: ok\n"


@pytest.mark.parametrize(
    ("source", "models", "why"),
    [
        ("def f(:\n", "models:f", "invalid syntax (models.py, line 1)"),
        ("1 / 0\n", "models:f", "ZeroDivisionError: division by zero"),
        ("f = 3\n", "models:f", "f is no function"),
        ("raise SystemExit(0)\n", "models:f", "SystemExit: 0"),
        ("", ":f", "give MODULE:FUNCTION"),
        ("", "models:", "give MODULE:FUNCTION"),
        ("", ".models:f", "give MODULE:FUNCTION"),
    ],
)
def test_models_that_cannot_be_had(tmp_path: Path, source: str, models: str, why: str) -> None:
    (tmp_path / "default-0-ab.jsonl").write_text(MEMBER)
    (tmp_path / "models.py").write_text(source)
    ended = check_history(str(tmp_path), "--models", models, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr
    assert ended.stderr.startswith(f"orcalike: --models {models}: ")
    assert why in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_models_are_imported_by_name(folder: Path) -> None:
    models = folder.parent / "models.py"
    models.write_text("def model_of(name):\n    print('asked for', name)\n")
    ended = check_history(str(folder), "--models", "models:model_of", cwd=folder.parent)
    assert ended.returncode == 0, ended.stderr
    assert "asked for hits" in ended.stdout
    ended = check_history(str(folder), "--models", "models:other")
    assert ended.returncode == 2
    assert "--models models:other" in ended.stderr
