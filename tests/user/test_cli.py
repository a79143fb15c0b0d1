"""The `orcalike` command's other verbs, and what it says to mistakes."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from orcalike.cli import VERBS, cli
from orcalike.cli.common import did_you_mean, duration
from orcalike.cli.examples import FOLDER
from orcalike.launcher import job


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="orcalike")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10.0), ("500ms", 0.5), ("10m", 600.0), ("2 hours", 7200.0), ("5 minutes", 300.0),
     ("1.5", 1.5), (".5s", 0.5)],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "5x", "-1s", "1 2", "abc"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter, match="not a duration"):
        duration(text)


def test_near_names_are_offered() -> None:
    assert did_you_mean("tps", ["tsp", "asp"]) == "; did you mean 'tsp'?"
    assert did_you_mean("zzz", ["tsp"]) == ""


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_the_verbs(flag: str) -> None:
    text = call(flag).output
    assert all(f"  {verb} " in text for verb in VERBS)
    for verb in VERBS:
        assert "Usage: orcalike" in call(verb, flag).output


def test_version_is_quick_to_say() -> None:
    """Less than 0.2 s of processor time, whatever else the machine does."""
    command = [sys.executable, "-m", "orcalike", "--version"]
    spent = []
    for _ in range(3):
        before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        spent.append(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before)
    assert result.stdout.startswith("orcalike 0.")
    assert min(spent) < 0.2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rnu"], "did you mean 'run'?"),
        (["run"], "Missing argument 'PROG'"),
        (["run", "-n", "0", "x.py"], "not a number of processes"),
        (["run", "-n", "many", "x.py"], "not a number of processes"),
        (["run", "--nprocz", "2", "x.py"], "--nprocs"),
        (["run", "--timeout", "soon", "x.py"], "not a duration"),
        (["run", "-x", "NOT_SET_ANYWHERE", "-m", "this"], "is not set"),
        (["run", "no-such-program.py"], "there is no program 'no-such-program.py'"),
        (["run", "json"], "orcalike run -m json"),
        (["examples", "show", "no-such-example"], "there is no example"),
    ],
)
def test_mistakes_get_words_and_2(arguments: list[str], words: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_examples_are_listed_and_shown() -> None:
    listed = json.loads(call("examples", "list", "--json").output)
    assert {"asp", "tsp"} <= {example["name"] for example in listed}
    for example in listed:
        assert example["summary"]
        assert example["name"] in call("examples", "list").output
        assert call("examples", "show", example["name"]).output == (
            FOLDER / f"{example['name']}.py"
        ).read_text(encoding="utf-8")


def test_stacks_are_listed() -> None:
    layers = {layer["name"]: layer for layer in json.loads(call("stacks", "--json").output)}
    assert {"COM", "MBRSHIP", "TOTAL"} <= layers.keys()
    assert layers["TOTAL"]["needs"]
    assert "TOTAL" in call("stacks", "list").output


def test_stacks_are_checked() -> None:
    good = call("stacks", "check", "PACK:XFER:TOTAL:MBRSHIP:COM:unix")
    assert (good.exit_code, good.output) == (
        0,
        "ok  PACK:XFER:TOTAL:MBRSHIP:COM:unix\n    objects: yes\n    messages: yes\n",
    )
    bad = call("stacks", "check", "TOTAL:COM:unix")
    assert bad.exit_code == 1
    assert "MBRSHIP" in bad.stderr
    assert json.loads(call("stacks", "check", "TOTAL:COM:unix", "--json").output)["ok"] is False


def test_doctor_finds_this_machine_well() -> None:
    result = call("doctor")
    assert result.exit_code == 0, result.output
    assert "Unix sockets" in result.output
    findings = json.loads(call("doctor", "--json").output)
    assert {finding["status"] for finding in findings} <= {"ok", "warn"}


def test_runtime_directory_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(job, "SOCKET_PATH_MAX", 1000)
    assert job.runtime_base() == tmp_path / "orcalike"
    assert (tmp_path / "orcalike").stat().st_mode & 0o777 == 0o700
    (tmp_path / "orcalike").chmod(0o755)
    assert job.runtime_base() != tmp_path / "orcalike"


def test_runtime_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    real = Path.lstat
    foreign = tmp_path / "file"
    foreign.touch()
    monkeypatch.setattr(Path, "lstat", lambda self: real(foreign))
    with pytest.raises(job.LaunchError, match="not a directory of yours"):
        job.runtime_base()
