"""`orcalike run -H` as a user meets it. A command in place of ssh has all hosts on this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orcalike.launcher.remote_host import LEASE
from tests.lib.broken_runs import LEAVES_MANY_THAT_END
from tests.lib.fake_ssh import FakeSsh
from tests.lib.own_runs import ORCALIKE, take_folder
from tests.lib.processes import DEADLINE, is_alive, parent_of, until
from tests.lib.ssh_hosts import COUNTS
from tests.lib.terminal import Terminal
from tests.lib.warm import WarmCli

if TYPE_CHECKING:
    from tests.lib.command import Cli

WRITES_PID = "open('{}/pid' + str(rank), 'w').write(str(os.getpid()) + '\\n')\n"
WAIT = "import signal; signal.pause()"


@pytest.fixture
def cli(tmp_path: Path) -> WarmCli:
    """The command, for this test."""
    return WarmCli(tmp_path)


@pytest.fixture(autouse=True)
def ssh(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> FakeSsh:
    """The command; runs have their folders in the test's own."""
    fake = FakeSsh(tmp_path)
    monkeypatch.setenv("ORCALIKE_SSH", str(fake.path))
    take_folder(tmp_path_factory, monkeypatch)
    return fake


def folders() -> list[str]:
    """What runs have left of their folders."""
    return os.listdir(Path(os.environ["XDG_RUNTIME_DIR"]) / "orcalike")


# What a run over hosts has


def test_ranks_of_all_hosts_form_one_group(cli: Cli, ssh: FakeSsh) -> None:
    result = cli.run("-H", "a:2,b:1", "--sequencer", "witness", cli.write(COUNTS))
    assert (result.returncode, sorted(result.stdout.splitlines())) == (
        0,
        ["[0] 30", "[1] 30", "[2] 30"],
    ), result.stderr
    assert "3 members on 2 hosts (ssh) · sequencer: witness" in result.stderr
    assert folders() == []


def test_nothing_of_the_run_is_on_a_command_line(cli: Cli, ssh: FakeSsh) -> None:
    program = cli.write("print(open('/proc/self/cmdline').read())")
    cli.run("-H", "a,b", "-x", "COLOUR=red", program, "secret")
    assert len(ssh.calls()) == 2
    for call in ssh.calls():
        assert re.search(r" -- exec \S+ -P -m orcalike\.launcher\.agent$", call)
        assert "BatchMode=yes" in call


def test_ranks_find_their_places(cli: Cli) -> None:
    program = cli.write("import json; print(json.dumps(dict(os.environ, cwd=os.getcwd())))")
    result = cli.run("-H", "a:2,b:3", "-n", "4", "-x", "COLOUR=red", "--seed", "5", program)
    ranks = [json.loads(line[4:]) for line in sorted(result.stdout.splitlines())]
    found = [
        (rank["HOST_NAME"], rank["RANK"], rank["LOCAL_RANK"], rank["ORCALIKE_NODE_RANK"])
        for rank in ranks
    ]
    assert found == [
        ("a", "0", "0", "0"),
        ("a", "1", "1", "0"),
        ("b", "2", "0", "1"),
        ("b", "3", "1", "1"),
    ]
    assert {rank["LOCAL_WORLD_SIZE"] for rank in ranks} == {"2"}
    assert {rank["WORLD_SIZE"] for rank in ranks} == {"4"}
    assert {rank["COLOUR"] for rank in ranks} == {"red"}
    assert {rank["ORCALIKE_DETECTION"] for rank in ranks} == {"2s"}
    assert {rank["PYTHONHASHSEED"] for rank in ranks} == {"5"}
    assert {rank["cwd"] for rank in ranks} == {os.getcwd()}
    assert len({rank["ORCALIKE_RUNTIME_DIR"] for rank in ranks}) == 2
    assert not any("KEY" in name and name != "ORCALIKE_KEY_FD" for rank in ranks for name in rank)


def test_input_and_output_of_any_size(cli: Cli) -> None:
    program = cli.write(
        """
        if rank == 0:
            data = sys.stdin.read()
            print(len(data), data[-5:])
        print("x" * 3_000_000)
        print("ends", file=sys.stderr)
        """
    )
    result = cli.run("-H", "a,b", "-q", program, input="input\n" * 200_000)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "[0] 1200000 nput" in lines
    assert result.stdout.count("x") == 6_000_000
    assert sorted(result.stderr.splitlines()) == ["[0] ends", "[1] ends"]


def test_ctrl_s_for_longer_than_the_lease(cli: Cli, tmp_path: Path) -> None:
    """The launcher goes on with all but the output, so the agents do not take it for lost."""
    program = cli.write(
        f"""
        end = time.monotonic() + {LEASE} + 3
        while time.monotonic() < end:
            print('x' * 1000 + 'y')
        open('{tmp_path}/over' + str(rank), 'w').close()
        """
    )
    terminal = Terminal(*cli.command, "-H", "a,b", "--color", "never", program)
    terminal.expect("xy")
    terminal.send("\x13")  # Ctrl-S
    leases_end = time.monotonic() + LEASE + 2
    until(lambda: time.monotonic() > leases_end)
    terminal.send("\x11")  # Ctrl-Q
    assert terminal.ended() == 0, terminal.before[-1000:]
    assert len(list(tmp_path.glob("over*"))) == 2


def test_hosts_of_a_file(cli: Cli, tmp_path: Path) -> None:
    hostfile = tmp_path / "hosts"
    hostfile.write_text("a slots=2  # big\nb\n")
    result = cli.run("--hostfile", str(hostfile), "-q", cli.write("print(os.environ['HOST_NAME'])"))
    assert sorted(result.stdout.split()) == sorted(["[0]", "a", "[1]", "a", "[2]", "b"])


def test_this_host_needs_no_connection(cli: Cli, ssh: FakeSsh) -> None:
    result = cli.run("-H", "localhost:2", "-q", cli.write("print(os.environ['ORCALIKE_LISTEN'])"))
    assert [line[4:9] for line in result.stdout.splitlines()] == ["unix:", "unix:"]
    assert ssh.calls() == []


def test_this_host_and_another_one(cli: Cli, ssh: FakeSsh) -> None:
    result = cli.run("-H", "localhost,b", "-q", "--sequencer", "witness", cli.write(COUNTS))
    assert sorted(result.stdout.splitlines()) == ["[0] 20", "[1] 20"], result.stderr
    assert len(ssh.calls()) == 1


def test_a_dry_run_shows_commands(cli: Cli, ssh: FakeSsh) -> None:
    lines = cli.run("-H", "a:2,b:2", "-n", "3", "--dry-run", cli.write("")).stdout.splitlines()
    assert re.fullmatch(
        r"\S+fake-ssh -T .* a -- exec \S+ -P -m orcalike.launcher.agent   # a: ranks 0 1", lines[0]
    )
    assert lines[1].endswith("# b: ranks 2")
    assert ssh.calls() == []


def test_stacks_status_and_chaos_reach_other_hosts(cli: Cli) -> None:
    program = cli.write(
        "def waits_here():\n    sys.stdin.readline()\nprint('ready', flush=True)\nwaits_here()"
    )
    with cli.started("-H", "a", "-q", "--sequencer", "rank", program) as run:
        assert run.stdout is not None
        assert run.stdin is not None
        assert run.stdout.readline() == "[0] ready\n"
        status = subprocess.run(
            [*ORCALIKE, "status", "--json"], capture_output=True, text=True, check=True
        )
        (process,) = json.loads(status.stdout)[0]["processes"]
        assert (process["role"], process["host"]) == (0, "a")
        assert is_alive(process["pid"])
        run.send_signal(signal.SIGUSR1)
        assert run.stderr is not None
        while "waits_here" not in (line := run.stderr.readline()):
            assert line
        done = subprocess.run(
            [*ORCALIKE, "chaos", "kill", "0"], capture_output=True, text=True, check=True
        )
        assert "killed rank 0" in done.stdout
        assert run.wait(DEADLINE) == 137


# Failures


def test_a_rank_that_fails_is_named_with_its_host(cli: Cli) -> None:
    program = cli.write("import signal\nif rank == 2: raise ZeroDivisionError\nsignal.pause()")
    result = cli.run("-H", "a:2,b:2", program)
    assert result.returncode == 1
    assert "[2] ZeroDivisionError" in result.stderr
    assert re.search(
        r"rank 2 \(host b, pid \d+\) failed first with exit code 1 .*3 others stopped",
        result.stderr,
    )
    assert folders() == []


def test_what_a_rank_leaves_behind_is_reaped_when_it_ends(cli: Cli) -> None:
    """The agent has adopted it, and the rank sees that it is gone before it ends itself."""
    ended = cli.run("-H", "a:1,b:1", cli.write(LEAVES_MANY_THAT_END))
    assert ended.returncode == 3, ended.stderr


def test_others_go_on_and_ranks_are_started_again(cli: Cli, tmp_path: Path) -> None:
    program = cli.write("if rank == 1: sys.exit(3)\nprint('well')")
    result = cli.run("-H", "a,b", "--keep-going", program)
    assert (result.returncode, "[0] well" in result.stdout) == (0, True)
    assert "rank 1 (host b" in result.stderr
    program = cli.write(
        "if rank == 1 and os.environ['ORCALIKE_RESTART_COUNT'] == '0': sys.exit(3)\nprint('well')"
    )
    result = cli.run("-H", "a,b", "--restart", "1", program)
    assert (result.returncode, sorted(result.stdout.split())) == (0, ["[0]", "[1]", "well", "well"])


def test_ctrl_c_reaches_all_hosts(cli: Cli, tmp_path: Path) -> None:
    program = cli.write(WRITES_PID.format(tmp_path) + WAIT)
    with cli.started("-H", "a,b", program) as run:
        pids = cli.pids(2)
        run.send_signal(signal.SIGINT)
        assert run.wait(DEADLINE) == 130
    assert not any(map(is_alive, pids))
    assert folders() == []


def test_a_time_limit_shows_stacks_of_all_hosts(cli: Cli) -> None:
    program = cli.write("def waits_here():\n    time.sleep(1000)\nwaits_here()")
    shown: list[str] = []
    for seconds in (8, 80):  # on a busy machine it takes longer until both ranks wait
        result = cli.run("-H", "a,b", "--timeout", f"{seconds}s", program)
        assert result.returncode == 124
        if len(shown := re.findall(r"\[[01]\].*waits_here", result.stderr)) >= 2:
            break
    assert len(shown) >= 2


# No orphan


@pytest.mark.parametrize("victim", ["launcher", "agent", "ssh"])
def test_whichever_part_is_killed_nothing_is_left(cli: Cli, tmp_path: Path, victim: str) -> None:
    program = cli.write(
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '1000'], start_new_session=rank == 0)\n"
        "open(f'{os.environ[\"PIDS\"]}/agent' + str(rank), 'w').write(f'{os.getppid()}\\n')\n"
        "open(f'{os.environ[\"PIDS\"]}/pid' + str(rank), 'w').write(f'{os.getpid()}\\n{child.pid}\\n')\n"
        + WAIT
    )
    with cli.started("-H", "a,b", "-x", f"PIDS={tmp_path}", program) as run:
        pids = cli.pids(4)
        agents = [int((tmp_path / f"agent{rank}").read_text()) for rank in range(2)]
        ssh = parent_of(agents[1])
        os.kill({"launcher": run.pid, "agent": agents[1], "ssh": ssh}[victim], signal.SIGKILL)
        if victim != "launcher":
            assert run.wait(DEADLINE) == 69
            assert run.stderr is not None
            assert re.search(
                r"rank 1 \(host b, pid \d+\) was lost first .*: host b is lost", run.stderr.read()
            )
        until(lambda: not any(map(is_alive, [*pids, *agents])), "the end of all processes")
    until(lambda: folders() == [], "the end of all folders")


def test_others_go_on_without_a_lost_host(cli: Cli, tmp_path: Path) -> None:
    program = cli.write(
        f"open('{tmp_path}/pid' + str(rank), 'w').write(f'{{os.getppid()}}\\n')\n"
        "if rank: time.sleep(1000)\n"
        f"while not os.path.exists('{tmp_path}/go'): time.sleep(0.05)\n"
        "print('well')"
    )
    with cli.started("-H", "a,b", "--keep-going", program) as run:
        cli.pids(2)
        os.kill(int((tmp_path / "pid1").read_text()), signal.SIGKILL)
        assert run.stderr is not None
        while "was lost" not in (line := run.stderr.readline()):
            assert line
        assert "1 other goes on" in line
        (tmp_path / "go").touch()
        assert run.wait(DEADLINE) == 0
        assert run.stdout is not None
        assert "[0] well" in run.stdout.read()


# Bad input


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("unknown", "cannot reach host unknown: ssh: Could not resolve hostname"),
        (
            "refusing",
            "cannot reach host refusing: ssh: connect .* Connection refused; try: ssh refusing true",
        ),
        ("dropping", "cannot reach host dropping: kex_exchange_identification"),
        ("chatty", "host chatty does not answer as an agent: .*Welcome"),
        (
            "wordy",
            r"host wordy: the agent .* code 1: This account is closed.; try: ssh wordy \S+ -m orcalike",
        ),
    ],
)
def test_hosts_that_cannot_be_had(cli: Cli, ssh: FakeSsh, host: str, message: str) -> None:
    program = cli.write("print('runs')")
    result = cli.run("-H", f"a,{host}", program)
    assert (result.returncode, result.stdout) == (69, "")
    assert re.search(f"orcalike: {message}", result.stderr), result.stderr
    # The agent of the other host sees by itself that its line has ended.
    until(lambda: folders() == [], "the end of all folders")
    if host == "dropping":
        assert sum(" dropping -- " in call for call in ssh.calls()) == 3


def test_a_connection_that_was_dropped_is_tried_again(cli: Cli) -> None:
    assert cli.run("-H", "busy", "-q", cli.write("print('runs')")).stdout == "[0] runs\n"


def test_what_a_shell_prints_is_skipped(cli: Cli) -> None:
    result = cli.run("-H", "banner", "-q", cli.write("print('runs')"))
    assert (result.stdout, result.stderr) == ("[0] runs\n", "")


@pytest.fixture(params=["csh", "tcsh", "fish", "bash", "dash"])
def shell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The login shell on all hosts."""
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setenv("LOGIN_SHELL", name)
    return name


def test_other_login_shells(cli: Cli, tmp_path: Path, shell: str) -> None:
    python = tmp_path / "own python's"  # quoted for each shell
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    result = cli.run("-H", "a", "-q", "--remote-python", str(python), cli.write("print('runs')"))
    assert (result.stdout, result.stderr) == ("[0] runs\n", "")


@pytest.mark.parametrize("python", ["/no/python", "no-python", "/etc/passwd"])
def test_an_interpreter_that_is_not_there(cli: Cli, shell: str, python: str) -> None:
    result = cli.run("-H", "a", "--remote-python", python, cli.write(""))
    assert result.returncode == 69
    assert f"host a has no interpreter {python} (" in result.stderr
    assert "--remote-python PATH" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-H", "a:2", "-n", "3"], "-n 3 is more than the 2 slots of a:2"),
        (["-H", "a,a"], "the host a is named twice"),
        (["-H", "a", "--unix"], "--unix is for one host"),
        (["--interface", "eth0"], "give -H too"),
        (["-H", "a", "--advertise", "b=10.0.0.1"], "of one of a"),
        (["-H", "a", "--hostfile", "x"], "give one of them"),
        (["--hostfile", "/no/file"], "--hostfile /no/file: No such file"),
    ],
)
def test_options_that_contradict_each_other(cli: Cli, arguments: list[str], message: str) -> None:
    result = cli.run(*arguments, cli.write(""))
    assert (result.returncode, message in result.stderr) == (2, True), result.stderr


def test_an_address_that_is_none_of_the_hosts(cli: Cli) -> None:
    result = cli.run("-H", "a", "--advertise", "a=192.0.2.7", cli.write(""))
    assert result.returncode == 69
    assert re.search(r"host a: .*192\.0\.2\.7", result.stderr), result.stderr
    result = cli.run("-H", "a", "--interface", "no-such", cli.write(""))
    assert result.returncode == 69
    assert re.search(r"host a: no-such: interface 'no-such'", result.stderr), result.stderr
