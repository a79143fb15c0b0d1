"""`orcalike run --via slurm` and `--via mpi`: commands in place of `srun` and `mpiexec`, which start the agents here."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orcalike.session import key_file
from tests.lib.warm import WarmCli

if TYPE_CHECKING:
    from tests.lib.command import Cli

#: Both take options with `=`, or with a word after them, before the program.
_SCRIPT = """#!/bin/sh
echo "$0 $*" >> {log}
[ "$1" = --version ] && {{ echo {version}; exit 0; }}
while :; do
    case $1 in
        -n|-hosts|-bind-to|--host|--bind-to) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
PMI_RANK=0 exec "$@"
"""

COUNTS = """
import orcalike as orca
from orcalike.objects import Counter
with orca.join() as group:
    counter = group.share(Counter, "n")
    counter.add(1)
    group.barrier()
    print(counter.get(), "PMI_RANK" in os.environ, flush=True)
"""


@pytest.fixture
def cli(tmp_path: Path) -> WarmCli:
    """The command, for this test."""
    return WarmCli(tmp_path)


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The commands, which note how they are called, and a user with a key."""
    written = tmp_path / "log"
    for name, version in (("srun", "slurm"), ("mpiexec", "HYDRA build details")):
        command = tmp_path / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.write_text(_SCRIPT.format(log=written, version=version))
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("ORCALIKE_KEY_FILE", raising=False)
    return written


@pytest.mark.parametrize(("via", "options"), [("slurm", "--nodelist=a"), ("mpi", "-hosts a")])
def test_agents_are_started_by_engines(cli: Cli, log: Path, via: str, options: str) -> None:
    path = key_file.default_path()
    assert path is not None
    entry = key_file.draw()
    key_file.write(path, [entry])
    result = cli.run("--via", via, "-H", "a,b", cli.write(COUNTS))
    assert (result.returncode, sorted(result.stdout.splitlines())) == (
        0,
        ["[0] 2 False", "[1] 2 False"],
    ), result.stderr
    assert f"2 hosts ({via})" in result.stderr
    assert options in log.read_text()
    assert entry.key.secret.hex() not in log.read_text()


@pytest.mark.parametrize("via", ["slurm", "mpi"])
def test_without_a_key_nothing_is_started(cli: Cli, log: Path, via: str) -> None:
    result = cli.run("--via", via, "-H", "a", cli.write(""))
    assert result.returncode == 77
    assert "orcalike keygen" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_host_without_the_key_is_named_though_another_has_not_answered_yet(
    cli: Cli, log: Path, tmp_path: Path
) -> None:
    """Its agent has ended by then."""
    path = key_file.default_path()
    assert path is not None
    key_file.write(path, [key_file.draw()])
    command = tmp_path / "bin" / "mpiexec"
    elsewhere = f"""#!/bin/sh
export XDG_CONFIG_HOME={tmp_path / "none"}
case "$*" in *"-hosts b"*) sleep 2 ;; esac
"""
    command.write_text(elsewhere + command.read_text())
    result = cli.run("--via", "mpi", "-H", "a,b", cli.write(COUNTS))
    assert result.returncode == 69
    assert "host a: it has no key" in result.stderr
    assert "orcalike keygen" in result.stderr


@pytest.mark.parametrize(
    "days", [("1970-01-01", "2999-12-31"), ("yesterday", "")], ids=["far-away", "no-day"]
)
def test_the_day_of_a_key_is_for_people(cli: Cli, log: Path, days: tuple[str, str]) -> None:
    """Hosts' clocks may be years apart: what a file says of its age is compared with none of them."""
    path = key_file.default_path()
    assert path is not None
    key_file.write(path, [key_file.draw()._replace(made=day) for day in days])
    result = cli.run("--via", "slurm", "-H", "a", "-q", cli.write(COUNTS))
    assert (result.returncode, result.stdout) == (0, "[0] 1 False\n"), result.stderr


def test_a_host_from_which_the_key_was_removed_is_named(
    cli: Cli, log: Path, tmp_path: Path
) -> None:
    path = key_file.default_path()
    assert path is not None
    here, there = key_file.draw(), key_file.draw()
    key_file.write(path, [here, there])
    key_file.write(tmp_path / "elsewhere" / "orcalike" / "key", [there])
    command = tmp_path / "bin" / "srun"
    elsewhere = f"#!/bin/sh\nexport XDG_CONFIG_HOME={tmp_path / 'elsewhere'}\n"
    command.write_text(elsewhere + command.read_text())
    result = cli.run("--via", "slurm", "-H", "a", cli.write(COUNTS))
    assert (result.returncode, result.stdout) == (69, "")
    ids = f"{here.key.id.hex()}, .*, but {there.key.id.hex()}"
    assert re.search(f"host a: it has no key {ids}: .*removed.*keygen --list.*copy", result.stderr)
    assert here.key.secret.hex() not in result.stderr + log.read_text()


@pytest.mark.parametrize("given", ["named by the variable", "where it is by itself"])
def test_open_mpi_passes_on_where_the_key_is(
    cli: Cli, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """It gives processes on other hosts none of the variables, unless it is said."""
    command = tmp_path / "bin" / "mpiexec"
    text = command.read_text().replace("HYDRA build details", "Open MPI 5.0.8")
    command.write_text(text.replace("-n|", "-n|-x|"))
    path = tmp_path / "my key" if given == "named by the variable" else key_file.default_path()
    assert path is not None
    key_file.write(path, [key_file.draw()])
    if given == "named by the variable":
        monkeypatch.setenv("ORCALIKE_KEY_FILE", str(path))
    result = cli.run("--via", "mpi", "-H", "a", cli.write(COUNTS))
    assert result.returncode == 0, result.stderr
    passed_on = "-x ORCALIKE_KEY_FILE " in log.read_text()
    assert passed_on == (given == "named by the variable")


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--interface", "eth0"]])
def test_outside_of_an_allocation_there_are_no_hosts(
    cli: Cli, log: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    result = cli.run("--via", "slurm", *options, cli.write(""))
    assert result.returncode == 2
    assert "this is no allocation of Slurm" in result.stderr
    assert "salloc -N 2 -n 8 orcalike run --via slurm" in result.stderr
    assert "-H or --hostfile" in result.stderr
    assert not log.exists()


def test_a_list_of_nodes_that_makes_no_sense(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-")
    result = cli.run("--via", "slurm", cli.write(""))
    assert (result.returncode, result.stdout) == (2, "")
    assert "SLURM_JOB_NODELIST: 'n[1-' is no list of hosts" in result.stderr
    assert "-H or --hostfile" in result.stderr


def test_a_dry_run_in_an_allocation(cli: Cli, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "3,1")
    monkeypatch.setenv("SLURM_JOB_CPUS_PER_NODE", "6,2")
    monkeypatch.delenv("SLURM_STEP_ID", raising=False)
    result = cli.run("--via", "slurm", "--advertise", "n2=10.0.0.2", "--dry-run", cli.write(""))
    assert result.returncode == 0, result.stderr
    first, second, _ = result.stdout.splitlines()
    assert "--nodelist=n1 --overlap --cpus-per-task=6 " in first
    assert first.endswith("# n1: ranks 0 1 2")
    assert "--nodelist=n2 --overlap --cpus-per-task=2 " in second
    assert second.endswith("# n2: ranks 3")
    assert not log.exists()


def test_via_is_for_other_hosts(cli: Cli) -> None:
    result = cli.run("--via", "mpi", cli.write(""))
    assert (result.returncode, "-H or --hostfile" in result.stderr) == (2, True)
