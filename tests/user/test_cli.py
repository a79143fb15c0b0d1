"""The `orcalike` command's other verbs, and what it says to mistakes."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from orcalike.bench.parts import PARTS
from orcalike.cli.common import did_you_mean, duration
from orcalike.cli.examples import FOLDER
from orcalike.cli.verbs import VERBS, cli
from orcalike.launcher import job, runtime_folders
from orcalike.launcher.errors import LaunchError
from tests.lib.keyed import short_records_by

ROOT = Path(__file__).parents[2]


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


def commands(command: click.Command = cli, *names: str) -> Iterator[tuple[str, click.Command]]:
    """Each command by its name, as `chaos kill`."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield " ".join((*names, name)), inner
            yield from commands(inner, *names, name)


def options_of(command: click.Command) -> set[str]:
    """The long options of a command."""
    options = {name for parameter in command.params for name in parameter.opts}
    return {name for name in options if name.startswith("--")}


def test_the_manual_has_each_command_and_option() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    table, *sections = page.split("\n## orcalike ")
    by_verb = {section.partition("\n")[0]: section for section in sections}
    assert sorted(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == sorted(VERBS)
    assert sorted(by_verb) == sorted(VERBS)
    for name, command in commands():
        verb, _, inner = name.partition(" ")
        assert re.search(rf"\b{inner}\b", by_verb[verb]), name
        if name != "examples run":  # it has those of `run`
            missing = [
                option
                for option in options_of(command) - {"--json"}
                if not re.search(rf"{option}\b", by_verb[verb])
            ]
            assert missing == [], name
    there_are = {option for _, command in commands() for option in options_of(command)}
    shown = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", page))
    assert shown - there_are == {"--cities", "--help"}  # an example's own, and click's


def test_the_help_of_bench_has_each_part() -> None:
    listed = re.search(r"^ *Parts: ([a-z, \n]+)\.$", call("bench", "--help").output, re.MULTILINE)
    assert listed is not None
    assert re.split(r",\s+", listed[1]) == list(PARTS)


def test_the_examples_of_the_help_can_be_typed() -> None:
    """Each has a command that there is, and options that it takes."""
    known = dict(commands())
    seen = 0
    for command in (cli, *known.values()):
        for line in re.findall(
            r"^ *((?:[A-Z_]+=\S+ )?orcalike .*)", command.help or "", re.MULTILINE
        ):
            typed = re.split(r"  |\|", line)[0].split()
            typed = [word.strip("'") for word in typed[typed.index("orcalike") + 1 :]]
            words = 2 if " ".join(typed[:2]) in known else 1
            inner = known[" ".join(typed[:words])]
            context = click.Context(inner, **inner.context_settings)
            inner.make_parser(context).parse_args(typed[words:])
            seen += 1
    assert seen > 20


def test_what_is_no_number_is_called_so() -> None:
    for words in (["simulate", "--seed", "x"], ["run", "--restart", "x", "prog.py"]):
        result = call(*words)
        assert (result.exit_code, "'x' is not a valid integer." in result.output) == (2, True)
    for name, command in commands():
        ranges = [each.name for each in command.params if type(each.type) is click.IntRange]
        assert ranges == [], name


def test_version_is_quick_to_say() -> None:
    """Nothing is imported for it that only runs need."""
    command = [sys.executable, "-X", "importtime", "-m", "orcalike", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.startswith("orcalike 0.")
    imported = set(re.findall(r"\| +(\S+)$", result.stderr, re.MULTILINE))
    assert "orcalike.cli.verbs" in imported
    for of_runs in (
        "asyncio",
        "socket",
        "orcalike.cli.run",
        "orcalike.launcher",
        "orcalike.transport.stack",
    ):
        assert of_runs not in imported


@pytest.mark.parametrize("arguments", [["--help"], ["stacks"], ["slurm", "script", "prog.py"]])
def test_output_that_cannot_be_written(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "orcalike", *arguments]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=280
        )
    said = "orcalike: the output cannot be written: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (73, said)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["prog.py"], "there is no command 'prog.py'; to run it: orcalike run prog.py"),
        (["./prog.py"], "there is no command './prog.py'; to run it: orcalike run ./prog.py"),
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
        (["simulate", "--seed", "3", "--save", "no/such.json"], "there is no folder no"),
        (["simulate", "--seed", "3", "--diagram", "no/such.mmd"], "there is no folder no"),
        (["bench", "--only", "reads", "--json", "no/such.json"], "there is no folder no"),
        (["bench", "--only", "reads", "--csv", "no/such.csv"], "there is no folder no"),
    ],
)
def test_mistakes_get_words_and_2(arguments: list[str], words: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\xff", "no scenario"),
        ("[" * 100_000, "no scenario"),
        ("[]", "not a scenario of version 1"),
        ('{"version": 1}', "not a scenario: it has no events"),
        ('{"version": 1, "events": [3]}', "not a scenario"),
        ('{"version": 1, "seed": 1, "size": "x", "safety": 0, "events": []}', "size is 'x'"),
        ('{"version": 1, "seed": 1, "size": 0, "safety": 0, "events": []}', "1 process at the"),
        (
            '{"version": 1, "seed": 1, "size": 2, "safety": 0, "events": [{"do": "cast", "at": true}]}',
            "at is True, and must be int",
        ),
    ],
)
def test_what_is_no_scenario(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "found.json"
    path.write_text(text, encoding="latin-1")
    result = call("simulate", "--scenario", str(path))
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"orcalike: {path}: ")
    assert why in result.stderr


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


def test_doctor_says_what_seals_short_records() -> None:
    with short_records_by("libsodium") as lack:
        shown = call("doctor").output
    assert ("short records over TCP: by libsodium, of PyNaCl" in shown) == (not lack)
    with short_records_by("cryptography"):
        shown = call("doctor").output
    assert re.search(
        r"^warn  short records over TCP: by cryptography, which is slower: PyNaCl: .*"
        r"pip install orcalike\[net\]$",
        shown,
        re.MULTILINE,
    )


def test_doctor_counts_ranks_as_the_launcher_does(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 1024
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    shown = re.search(r"ulimit -n 1024: enough for about (\d+) ranks", call("doctor").output)
    assert shown is not None
    job.check_number(job.Options(program="prog.py", nprocs=int(shown[1])))
    with pytest.raises(LaunchError, match="may have 1024"):
        job.check_number(job.Options(program="prog.py", nprocs=int(shown[1]) + 1))


def test_runtime_directory_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(runtime_folders, "SOCKET_PATH_MAX", 1000)
    assert runtime_folders.runtime_base() == tmp_path / "orcalike"
    assert (tmp_path / "orcalike").stat().st_mode & 0o777 == 0o700
    (tmp_path / "orcalike").chmod(0o755)
    assert runtime_folders.runtime_base() != tmp_path / "orcalike"


def test_runtime_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    real = Path.lstat
    foreign = tmp_path / "file"
    foreign.touch()
    monkeypatch.setattr(Path, "lstat", lambda self: real(foreign))
    with pytest.raises(LaunchError, match="not a directory of yours"):
        runtime_folders.runtime_base()


@pytest.mark.parametrize("verb", [["run"], ["examples", "run"]])
def test_a_launcher_that_another_one_starts_for_each_process_is_refused(
    monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    """Here torchrun, whose variables it has: each would run the whole program."""
    monkeypatch.delenv("ORCALIKE_RANK", raising=False)
    torchrun = {"TORCHELASTIC_RUN_ID": "1", "RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "::1"}
    for name, value in torchrun.items():
        monkeypatch.setenv(name, value)
    result = call(*verb, "-n", "2", "asp" if verb[0] == "examples" else __file__)
    assert result.exit_code == 2
    assert "process 1 of 4 that torchrun has started: each would run the whole" in result.output
