"""`orcalike run` with what people write at first: each refusal says what to write instead."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orcalike.transport.degree import MEMBERS_MAX
from tests.lib.namespaces import in_namespace

if TYPE_CHECKING:
    from tests.lib.command import Cli

ROOT = Path(__file__).parents[2]


def test_a_number_of_processes_after_the_program(cli: Cli) -> None:
    program = cli.write("print(*sys.argv[1:])")
    ended = subprocess.run(
        [sys.executable, "-m", "orcalike", "run", "-q", "--no-prefix", program, "-n", "4"],
        capture_output=True,
        text=True,
        timeout=cli.deadline,
        check=True,
    )
    assert set(ended.stdout.splitlines()) == {"-n 4"}
    assert ended.stderr == (
        f"orcalike: -n 4 stands after {program}, so it is passed to the program; "
        f"for 4 processes: orcalike run -n 4 {program} ...\n"
    )
    assert cli.run("-n1", "-q", program, "-n", "4").stderr == ""


def test_options_have_defaults_in_the_environment(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their long names; `--unix` and `--tcp` are one choice."""
    program = cli.write("print(os.getcwd(), os.environ['A'], os.environ['ORCALIKE_ADDRESS'][:4])")
    defaults = {"NPROCS": "2", "CHDIR": "/", "ENV": "A=1", "QUIET": "1", "SCHEME": "tcp"}
    for name, value in defaults.items():
        monkeypatch.setenv(f"ORCALIKE_RUN_{name}", value)
    ended = cli.run(program)
    assert (sorted(ended.stdout.splitlines()), ended.stderr) == (
        ["[0] / 1 tcp:", "[1] / 1 tcp:"],
        "",
    )
    assert (
        cli.run("-n1", "-C", str(tmp_path), "--unix", program).stdout == f"[0] {tmp_path} 1 unix\n"
    )


def test_python_is_no_program(cli: Cli) -> None:
    for name in ("python", "python3.11"):
        ended = cli.run(name, "prog.py")
        assert ended.returncode == 2
        assert ended.stderr == (
            f"orcalike: there is no program {name!r}; orcalike starts Python itself: "
            "orcalike run [OPTIONS] PROG.py [ARGS]...\n"
        )


def test_more_ranks_than_there_can_be(cli: Cli) -> None:
    program = cli.write("pass")
    for options, least in (("--sequencer=witness", MEMBERS_MAX), ("-q", MEMBERS_MAX + 1)):
        ended = cli.run(f"-n{least}", options, program)
        assert ended.returncode == 2
        assert f"{least} ranks are too many: a group has 1024 members at the most" in ended.stderr


def test_more_ranks_than_the_system_has_files_for(cli: Cli) -> None:
    program = cli.write("pass")
    ended = subprocess.run(
        ["sh", "-c", 'ulimit -n 1024 && exec "$@"', "sh", *cli.command, "-n", "300", program],
        capture_output=True,
        text=True,
        timeout=cli.deadline,
        check=False,
    )
    assert ended.returncode == 70
    assert ended.stderr == (
        "orcalike: cannot start 300 ranks: the launcher has 1519 open files then, and may have "
        "1024; raise the limit (ulimit -n) or lower -n\n"
    )


def test_tcp_without_a_loopback_interface(cli: Cli) -> None:
    program = cli.write("pass")
    ended = subprocess.run(
        [*in_namespace("--net"), *cli.command, "-n1", "--tcp", program],
        capture_output=True,
        text=True,
        timeout=cli.deadline,
        check=False,
    )
    assert "--tcp needs the loopback interface: Network is unreachable; bring it up" in ended.stderr
    assert ended.returncode != 0


@pytest.mark.parametrize("there", ["none is there", "one is there"])
def test_no_directory_for_sockets(cli: Cli, there: str) -> None:
    """Nothing can be written in /tmp; the run's own folder is there from before, or is not."""
    own = Path("/tmp") / f"orcalike-{os.getuid()}"
    own.mkdir(mode=0o700, exist_ok=True)
    hide = f"mount -t tmpfs -o ro none {own.parent}" if there == "none is there" else ""
    if hide and ROOT.is_relative_to(own.parent):
        pytest.skip("the clone is in /tmp, which this test hides")
    mount = (hide or "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp") + ' && exec "$@"'
    ended = subprocess.run(
        [*in_namespace("--mount"), "sh", "-c", mount, "sh", *cli.command, "-n1", "-m", "this"],
        capture_output=True,
        text=True,
        timeout=cli.deadline,
        check=False,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"},
    )
    assert "Read-only file system; set XDG_RUNTIME_DIR to a directory of yours" in ended.stderr
    assert ended.returncode != 0


def test_a_source_tree_that_was_not_built(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "orcalike",
        tmp_path / "orcalike",
        ignore=lambda folder, names: [
            name for name in names if name.endswith(".so") or name == "__pycache__"
        ],
    )
    ended = subprocess.run(
        [sys.executable, "-c", "import orcalike"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=tmp_path,
    )
    assert ended.returncode == 1
    *_, last = ended.stderr.splitlines()
    assert last.startswith("ImportError: orcalike.runtime.")
    assert "is not compiled: this is a source tree that was not built; run `make build`" in last
