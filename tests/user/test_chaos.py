"""`orcalike chaos` as a user meets it: kill, pause and cut off members of a running program."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.lib.own_runs import LOOKING
from tests.lib.processes import is_alive, state_of, until
from tests.lib.terminal import Terminal
from tests.lib.warm import Fork, WarmCli, python

#: A rank that says where it is, and waits.
READY = """
print(os.environ["ORCALIKE_JOB_ID"], os.getpid(), os.environ["ORCALIKE_RUNTIME_DIR"], flush=True)
import signal
signal.pause()
"""
#: A rank that says what it is cut off from, each time, on a thread of its own: in one piece.
CUT = """
from orcalike.launch_protocol import control_channel
import signal
def say(text): os.write(1, f"{text}\\n".encode())
def cut(others): say(f"cut {sorted('w' if rank is None else str(rank) for rank in others)}")
control_channel.listen_cut(cut)
say("ready")
signal.pause()
"""


pytestmark = pytest.mark.usefixtures("own_runs")


@pytest.fixture
def cli(tmp_path: Path) -> WarmCli:
    """The command, for this test."""
    return WarmCli(tmp_path)


def chaos(*arguments: str) -> subprocess.CompletedProcess[str]:
    return python(*LOOKING, "chaos", *arguments)


def ready(process: Fork, count: int) -> tuple[str, dict[int, int], Path]:
    """The run's name, its ranks' processes, and its folder, when all have said them."""
    assert process.stdout
    said = [process.stdout.readline().split() for _ in range(count)]
    pids = {int(mark.strip("[]")): int(pid) for mark, _, pid, _ in said}
    return said[0][1], pids, Path(said[0][3])


def ask(directory: Path, data: bytes) -> Any:
    """What the control socket answers to these bytes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(directory / "control"))
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile() as answers:
            return json.loads(answers.readline())


def test_kill_a_rank(cli: WarmCli) -> None:
    with cli.started("-n3", "-q", "--keep-going", cli.write(READY)) as process:
        _, pids, _ = ready(process, 3)
        result = chaos("kill", "1")
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout == f"killed rank 1 (pid {pids[1]})\n"
        assert process.stderr
        assert process.stderr.readline() == f"orcalike chaos: killed rank 1 (pid {pids[1]})\n"
        assert "was killed by SIGKILL" in process.stderr.readline()
        assert (is_alive(pids[0]), is_alive(pids[2])) == (True, True)
        again = chaos("kill", "1")
        assert (again.returncode, again.stderr) == (1, "orcalike: rank 1 does not run\n")


def test_kill_in_a_run_that_does_not_go_on(cli: WarmCli) -> None:
    with cli.started("-n2", "-q", cli.write(READY)) as process:
        ready(process, 2)
        assert "without --keep-going or --restart the run ends with it" in chaos("kill", "0").stdout
        assert process.wait(cli.deadline) == 137


def test_kill_what_the_ranks_say_orders(cli: WarmCli) -> None:
    program = cli.write(
        "from orcalike.launch_protocol import control_channel\n"
        "if rank == 2: control_channel.report_sequencer('default')\n"
        "else: control_channel.report_unblocked('default')" + READY
    )
    with cli.started("-n3", "-q", "--keep-going", program) as process:
        _, pids, _ = ready(process, 3)
        assert chaos("kill", "sequencer").stdout == f"killed rank 2 (pid {pids[2]})\n"
        assert process.stderr
        process.stderr.readline()
        assert f"rank 2 (pid {pids[2]}) was killed" in process.stderr.readline()
        result = chaos("kill", "sequencer")
        assert result.returncode == 1
        assert "no member orders now" in result.stderr


def test_kill_the_witness_by_name(cli: WarmCli) -> None:
    flags = ("-n1", "-q", "--keep-going", "--sequencer", "witness")
    with cli.started(*flags, cli.write(READY)) as process:
        ready(process, 1)
        assert re.fullmatch(r"killed the witness \(pid \d+\)\n", chaos("kill", "witness").stdout)


def test_pause_a_rank(cli: WarmCli) -> None:
    with cli.started("-n2", "-q", cli.write(READY)) as process:
        _, pids, _ = ready(process, 2)
        result = chaos("pause", "0", "1s")
        assert result.stdout == f"rank 0 (pid {pids[0]}) is stopped, and continues in 1 s\n"
        until(lambda: state_of(pids[0]) == "S", "it goes on")
        assert process.stderr
        said = [process.stderr.readline() for _ in range(2)]
        assert said[1] == "orcalike chaos: rank 0 goes on\n"
        chaos("pause", "1", "1h")
        until(lambda: state_of(pids[1]) == "T", "it is stopped")
        assert state_of(pids[0]) == "S"
        process.send_signal(signal.SIGINT)
        assert process.wait(cli.deadline) == 130  # the one that is stopped ends as well


def test_ctrl_c_reaches_a_paused_rank_at_once(cli: WarmCli) -> None:
    """In a terminal: the rank that is stopped tidies up like the other."""
    program = cli.write(
        "try:\n    print('job', os.environ['ORCALIKE_JOB_ID'])\n    import signal; signal.pause()\n"
        "finally:\n    print('tidied up')"
    )
    terminal = Terminal(*cli.command, "-n2", "--grace", "1h", program)
    for _ in range(2):
        terminal.expect("job ")
    assert chaos("pause", "1", "1h").returncode == 0
    terminal.expect("is stopped")
    terminal.sendintr()
    assert terminal.ended() == 130
    assert terminal.before.count("tidied up") == 2


def test_partition_and_heal(cli: WarmCli) -> None:
    flags = ("-n4", "-q", "--sequencer", "witness")
    with cli.started(*flags, cli.write(CUT)) as process:
        assert process.stdout
        for _ in range(4):
            assert "ready" in process.stdout.readline()
        result = chaos("partition", "0,1/2,3")
        assert result.stdout == (
            "cut apart until it is healed: rank 0, rank 1 and the witness | rank 2 and rank 3\n"
        )
        heard = {process.stdout.readline() for _ in range(4)}
        assert heard == {
            "[0] cut ['2', '3']\n", "[1] cut ['2', '3']\n",
            "[2] cut ['0', '1', 'w']\n", "[3] cut ['0', '1', 'w']\n",
        }  # fmt: skip
        chaos("partition", "0/1,2,3,witness", "--for", "1s")
        heard = {process.stdout.readline() for _ in range(8)}
        assert heard == {
            "[0] cut ['1', '2', '3', 'w']\n", *(f"[{rank}] cut ['0']\n" for rank in (1, 2, 3)),
            *(f"[{rank}] cut []\n" for rank in range(4)),
        }  # fmt: skip
        assert chaos("heal").stdout == "no rank was cut off\n"
        chaos("partition", "0/1,2,3")
        assert chaos("heal").stdout == "healed\n"


def test_rank_that_is_started_again_is_still_cut_off(cli: WarmCli) -> None:
    program = cli.write(CUT)
    with cli.started("-n2", "-q", "--restart", "1", program) as process:
        assert process.stdout
        for _ in range(2):
            assert "ready" in process.stdout.readline()
        chaos("partition", "0/1")
        for _ in range(2):
            assert "cut" in process.stdout.readline()
        chaos("kill", "1")
        said = {process.stdout.readline() for _ in range(2)}
        assert said == {"[1] ready\n", "[1] cut ['0', 'w']\n"}


def test_several_runs(cli: WarmCli) -> None:
    program = cli.write(READY)
    refused = chaos("heal")
    assert refused.returncode == 69
    assert refused.stderr == "orcalike: no program of yours is running\n"
    with cli.started("-n1", "-q", program) as first, cli.started("-n2", "-q", program) as second:
        (one, _, _), (two, pids, _) = ready(first, 1), ready(second, 2)
        result = chaos("heal")
        assert result.returncode == 2
        assert sorted(result.stderr.splitlines()[1:]) == sorted(
            [f"  --job {one}  -n 1 {program}", f"  --job {two}  -n 2 {program}"]
        )
        assert chaos("--job", two, "pause", "1", "1s").returncode == 0
        assert chaos("pause", "1", "1s", "--job", two).returncode == 0
        assert chaos("--job", "nowhere", "heal").returncode == 69
        first.kill()
        first.wait()
        until(lambda: chaos("pause", "1", "1s").stdout.startswith(f"rank 1 (pid {pids[1]})"),
                  "one run is left")  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["kill", "two"], "'two' is not a rank, sequencer or witness"),
        (["pause", "1", "soon"], "'soon' is not a duration"),
        (["partition", "0,1"], "has one part"),
        (["partition", "0,/1"], "is not like 0,1/2"),
        (["kil", "1"], "No such command 'kil'"),
    ],
)
def test_wrong_command_lines(arguments: list[str], words: str) -> None:
    result = chaos(*arguments)
    assert result.returncode == 2
    assert words in result.stderr


def test_what_a_run_refuses(cli: WarmCli) -> None:
    with cli.started("-n2", "-q", cli.write(READY)) as process:
        ready(process, 2)
        for arguments, words in (
            (["kill", "2"], "there is no rank 2: they are 0 to 1"),
            (["kill", "witness"], "this run has no witness; with --sequencer witness it has one"),
            (["kill", "sequencer"], "no member orders now"),
            (["partition", "0/0,1"], "a rank can be in one part only"),
            (["pause", "1", "2h"], "7200.0 is not a time of at most 3600 s"),
        ):
            result = chaos(*arguments)
            assert (result.returncode, result.stdout) == (1, "")
            assert words in result.stderr


@pytest.mark.parametrize("sequencer", ["witness", "rank"])
def test_all_sockets_of_a_run_are_for_its_user_alone(cli: WarmCli, sequencer: str) -> None:
    """Also the one that the launcher makes for the first member (S7)."""
    before = os.umask(0o022)
    try:
        with cli.started("-n2", "-q", "--sequencer", sequencer, cli.write(READY)) as process:
            _, _, directory = ready(process, 2)
            found = {path.name: path for path in directory.iterdir() if path.is_socket()}
            assert found.keys() >= {"control", "witness" if sequencer == "witness" else "r0"}
            modes = {name: stat.S_IMODE(path.lstat().st_mode) for name, path in found.items()}
            assert set(modes.values()) == {0o600}, modes
    finally:
        os.umask(before)


def test_control_socket_takes_no_nonsense(cli: WarmCli) -> None:
    with cli.started("-n1", "-q", cli.write(READY)) as process:
        _, pids, directory = ready(process, 1)
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert stat.S_IMODE((directory / "control").stat().st_mode) == 0o600
        for data in (
            b"\n", b"{}\n", b"[1]\n", b"nonsense\n", b"\xff\xfe\n", b'{"do": "kill"}\n', b"no end",
            b"[" * 4000 + b"\n", b"x" * 10000, b'{"do": "kill", "member": [0]}\n',
            b'{"do": "kill", "member": true}\n', b'{"do": "pause", "member": 0, "seconds": NaN}\n',
            b'{"do": "pause", "member": 0, "seconds": "1"}\n', b'{"do": "kill", "member": -1}\n',
            b'{"do": "partition", "parts": [0, 1], "seconds": null}\n',
            b'{"do": "partition", "parts": [[0], []], "seconds": 1}\n',
        ):  # fmt: skip
            assert set(ask(directory, data)) == {"error"}, data
        silent = [socket.socket(socket.AF_UNIX) for _ in range(20)]
        for connection in silent:
            connection.connect(str(directory / "control"))
        for connection in silent:
            connection.close()
        until(lambda: chaos("pause", "0", "1ms").returncode == 0, "it answers again")
        assert is_alive(pids[0])


def test_silent_connections_are_let_go(cli: WarmCli) -> None:
    with cli.started("-n1", "-q", cli.write(READY)) as process:
        _, _, directory = ready(process, 1)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(cli.deadline)
            connection.connect(str(directory / "control"))
            began = time.monotonic()
            assert connection.recv(1) == b""
            assert time.monotonic() - began > 1


def test_other_users_are_refused(cli: WarmCli) -> None:
    """The folder keeps them out; a connection that got in all the same is known by its credentials."""
    if os.getuid() != 0:
        pytest.skip("only root can take another user's identity")
    with cli.started("-n1", "-q", cli.write(READY)) as process:
        _, pids, directory = ready(process, 1)
        pid = os.fork()
        if pid == 0:
            try:
                connection = socket.socket(socket.AF_UNIX)
                connection.settimeout(30)
                os.chdir(directory)
                os.chmod("control", 0o666)
                os.setuid(65534)
                connection.connect("control")
                connection.sendall(b'{"do": "kill", "member": 0}\n')
                os._exit(0 if connection.recv(100) == b"" else 1)
            except (ConnectionError, PermissionError):
                os._exit(0)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert is_alive(pids[0])
