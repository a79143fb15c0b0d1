"""Several ranks that start together are forked from a template: what is theirs is as if each were started by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.lib.command import Cli
from tests.lib.warm import WarmCli

LOOK = """\
import json, os, resource, signal, sys, threading
def kinds():
    for descriptor in range(64):
        try:
            yield os.readlink(f"/proc/self/fd/{descriptor}").partition(":")[0]
        except FileNotFoundError:
            pass
def status(*names):
    lines = open("/proc/self/status").read().splitlines()
    return [line for line in lines if line.startswith(names)]
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "flags": list(sys.flags), "names": sorted(os.environ),
    "main": sorted(vars()), "file": __file__, "spec": getattr(__spec__, "name", None), "package": __package__,
    "command": open("/proc/self/cmdline").read(), "directory": os.getcwd(),
    "signals": status("SigBlk", "SigIgn", "SigCgt", "NoNewPrivs", "Seccomp"),
    "handlers": [repr(signal.getsignal(getattr(signal, s))).partition(" at ")[0] for s in ("SIGINT", "SIGUSR1", "SIGTERM")],
    "descriptors": sorted(kinds()),
    "limits": resource.getrlimit(resource.RLIMIT_NOFILE),
    "session": os.getsid(0) == os.getpgrp() == os.getpid(),
    "threads": threading.active_count(), "collects": __import__("gc").isenabled(),
    "streams": [(s.encoding, s.errors, s.line_buffering, s.isatty()) for s in (sys.stdin, sys.stdout, sys.stderr)],
    "classes": [(type(s.buffer).__name__, s.name, s.mode, s.buffer.name, s.write_through) for s in (sys.stdin, sys.stdout, sys.stderr)],
    "own": [sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
    "input": (sys.stdin.seekable(), sys.stdin.buffer.seekable(), sys.stdin.read()),
    "output": (sys.stdout.seekable(), sys.stderr.seekable()),
    "hook": sys.excepthook.__module__,
}))
"""


@pytest.fixture
def cli(tmp_path: Path) -> WarmCli:
    """The command, for this test."""
    return WarmCli(tmp_path)


def ranks_of(cli: Cli, *arguments: str, **options: Any) -> dict[int, Any]:
    """What the ranks have printed, one line of JSON each."""
    result = cli.run(*arguments, **options)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    lines = [line.partition("] ") for line in result.stdout.splitlines()]
    return {int(number[1:]): json.loads(text) for number, _, text in lines}


@pytest.mark.parametrize("unbuffered", ["1", ""])
@pytest.mark.parametrize("names_orcalike", [True, False])
@pytest.mark.parametrize("as_module", [True, False])
def test_a_rank_is_as_one_that_was_started_by_itself(
    cli: Cli, names_orcalike: bool, as_module: bool, unbuffered: str
) -> None:
    program = Path(cli.write(LOOK + "import orcalike" * names_orcalike))
    named = ["-m", program.stem] if as_module else [str(program)]
    where = {"cwd": program.parent, "input": "\N{BULLET}\n"}
    given = ["-x", "A=b", "-x", f"PYTHONUNBUFFERED={unbuffered}", "--seed", "1", *named, "x"]
    alone = ranks_of(cli, "--quiet", "-n", "1", *given, **where)[0]
    ranks = ranks_of(cli, "--quiet", "-n", "3", *given, **where)
    assert sorted(ranks) == [0, 1, 2]
    assert ranks[0] == alone
    assert alone["input"] == [False, False, "\N{BULLET}\n"]
    names = [name for name in alone["names"] if name != "ORCALIKE_LISTEN_FD"]
    descriptors = [*alone["descriptors"]]
    descriptors.remove("socket")  # the listener, which only the first one has
    descriptors[descriptors.index("pipe")] = "/dev/null"  # the input, which is that one's as well
    descriptors.sort()
    empty = [*ranks[1]["input"][:2], ""]
    for rank in (1, 2):
        assert ranks[rank] == alone | {"names": names, "descriptors": descriptors, "input": empty}


# The template itself


def test_several_are_forked_from_it_and_one_alone_is_not(cli: Cli) -> None:
    site = with_site(cli, "import sys\nsys.was_template = is_template")
    program = cli.write("print(sys.was_template)")
    for count, found in ((3, "True"), (1, "False")):
        result = cli.run("-n", str(count), program, env=site)
        printed = sorted(result.stdout.splitlines())
        assert printed == [f"[{rank}] {found}" for rank in range(count)], result.stderr


def test_what_the_program_names_is_loaded_in_it(cli: Cli) -> None:
    """No rank takes the time to load it again; what no line names is not loaded."""
    noted = "import os, sys\ndef note():\n sys.at_fork = {*sys.modules}\n"
    site = with_site(cli, noted + "os.register_at_fork(after_in_child=note)")
    program = cli.write(
        """
        from orcalike.objects import Queue
        print(*[f"orcalike.objects.{name}" in sys.at_fork for name in ("queues", "topics")])
        """
    )
    result = cli.run("-n", "2", program, env=site)
    assert sorted(result.stdout.splitlines()) == ["[0] True False", "[1] True False"], result.stderr


def with_site(cli: Cli, source: str) -> dict[str, str]:
    """The environment, in which each interpreter runs this first; `is_template` says whether it is one."""
    folder = cli.directory / "site"
    folder.mkdir()
    head = "import os\nis_template = 'ORCALIKE_TEMPLATE_FD' in os.environ\n"
    (folder / "sitecustomize.py").write_text(head + source)
    return {**os.environ, "PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    "source",
    [
        "import threading, time\nthreading.Thread(target=time.sleep, args=[99], daemon=True).start()",
        "if is_template: os._exit(3)",
        "if is_template: os.kill(os.getpid(), 9)",
        "if is_template: os.listdir = lambda path: os.scandir('/no/proc')",
    ],
    ids=["a thread", "it ends", "it is killed", "no /proc"],
)
def test_ranks_start_where_there_can_be_no_template(tmp_path: Path, source: str) -> None:
    cli = Cli(tmp_path)  # the thread is in its launcher, too
    program = cli.write(
        "import orcalike as orca\nwith orca.join() as group: group.barrier(), print(group.rank)"
    )
    result = cli.run("-n", "3", program, env=with_site(cli, source))
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(result.stdout.splitlines()) == ["[0] 0", "[1] 1", "[2] 2"]


def test_ctrl_c_ends_a_run_whose_template_hangs(cli: Cli) -> None:
    loads = cli.directory / "loads"
    site = with_site(
        cli, f"if is_template:\n open({str(loads)!r}, 'w')\n import time; time.sleep(99)"
    )
    command = [*cli.command, "-n", "3", cli.write("")]
    with subprocess.Popen(command, env=site, stderr=subprocess.PIPE) as process:
        while not loads.exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=cli.deadline) == 128 + signal.SIGINT


def test_one_that_ends_in_between_leaves_the_other_ranks_to_the_launcher(cli: Cli) -> None:
    """It forks once, and then no more."""
    site = with_site(
        cli,
        """
if is_template:
    fork, parent, forks = os.fork, os.getpid(), []
    def once():
        if os.getpid() == parent:
            forks.append(1)
            if len(forks) > 1:
                os._exit(0)
        return fork()
    os.fork = once
""",
    )
    program = cli.write(
        "import orcalike as orca\nwith orca.join() as group: group.barrier(), print(group.rank)"
    )
    result = cli.run("-n", "3", program, env=site)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["[0] 0", "[1] 1", "[2] 2"]


@pytest.mark.parametrize("number", [1, 2])
def test_where_there_is_no_room_for_a_process_the_run_says_so_and_ends(
    cli: Cli, number: int
) -> None:
    """Both of a rank's forks can fail."""
    site = with_site(
        cli,
        f"""
if is_template:
    fork, forks = os.fork, []
    def fails():
        forks.append(1)
        if len(forks) == {number}:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()
    os.fork = fails
""",
    )
    result = cli.run("-n", "3", cli.write("time.sleep(99)"), env=site)
    assert result.returncode == 70
    assert "Resource temporarily unavailable" in result.stderr
    assert "Traceback" not in result.stderr


def test_it_is_gone_when_all_have_started(cli: Cli) -> None:
    program = cli.write(
        """
        import orcalike as orca
        def others():
            parent = os.getppid()
            children = open(f"/proc/{parent}/task/{parent}/children").read().split()
            assert str(os.getpid()) in children
            names = [open(f"/proc/{child}/comm").read().strip() for child in children]
            return len(children) - names.count("orcalike-reaper")
        with orca.join() as group:
            group.barrier()
            while others() > 3:
                time.sleep(0.01)
            group.barrier()
            print(others())
            group.barrier()
        """
    )
    result = cli.run("-n", "3", program)
    assert sorted(result.stdout.splitlines()) == [f"[{rank}] 3" for rank in range(3)], result.stderr


def test_a_rank_that_is_started_again_finds_the_program_as_it_is_then(cli: Cli) -> None:
    program = cli.write(
        """
        version = 1
        print("version", version)
        if rank == 1 and version == 1:
            text = open(__file__).read()
            open(__file__, "w").write(text.replace("version = 1", "version = 2", 1))
            sys.exit(1)
        """
    )
    result = cli.run("-n", "2", "--restart", "1", program)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["[0] version 1", "[1] version 1", "[1] version 2"]
