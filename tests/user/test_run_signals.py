"""How a run ends that does not end by itself: signals, the time limit, the launcher's death."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from pexpect import EOF

from tests.lib.broken_runs import LEAVES_MANY_THAT_END
from tests.lib.command import Cli
from tests.lib.processes import is_alive, state_of, until
from tests.lib.terminal import Terminal
from tests.lib.warm import WarmCli

#: A rank's way to wait until it is ended.
WAIT = "import signal; signal.pause()"
#: A rank's way to tell the test its process id.
TELL_PID = "open({directory!r} + f'/pid{{rank}}', 'w').write(f'{{os.getpid()}}\\n')\n"


@pytest.fixture
def cli(tmp_path: Path) -> WarmCli:
    """The command, for this test."""
    return WarmCli(tmp_path)


def test_ctrl_c_once_ends_gracefully(cli: Cli) -> None:
    program = cli.write(
        """
        try:
            print("ready")
            import signal; signal.pause()
        finally:
            print("tidied up")
        """
    )
    terminal = Terminal(*cli.command, "-n2", program)
    for _ in range(2):
        terminal.expect("ready")
    terminal.sendintr()
    status, text = terminal.ended(), terminal.before
    assert "stopping … (Ctrl-C again to kill)" in text
    assert text.count("tidied up") == 2
    assert "Traceback" not in text
    assert status == 130


def test_ctrl_c_twice_ends_at_once(cli: Cli) -> None:
    program = cli.write(
        """
        import signal
        for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)
        print("ready")
        while True: signal.pause()
        """
    )
    terminal = Terminal(*cli.command, "-n2", "--grace", "1h", program)
    for _ in range(2):
        terminal.expect("ready")
    terminal.sendintr()
    terminal.expect("Ctrl-C again to kill")
    terminal.sendintr()
    assert terminal.ended() == 130


def test_ctrl_c_before_the_launcher_is_ready(tmp_path: Path) -> None:
    """It still reads what is asked of it: here, from a pipe that says nothing."""
    hosts = tmp_path / "hosts"
    os.mkfifo(hosts)
    program = Cli(tmp_path).write("")
    pipe = subprocess.PIPE
    command = [*Cli.command, "--hostfile", str(hosts), program]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as process, hosts.open("wb"):
        process.send_signal(signal.SIGINT)
        assert process.communicate() == (b"", b"")
    assert process.returncode == 130


def test_terminal_colors_and_input(cli: Cli) -> None:
    program = cli.write("print(input('name? ') if rank == 0 else 'other')")
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    terminal = Terminal(*cli.command, "-n2", program, env=environment | {"TERM": "xterm"})
    terminal.expect_exact("\x1b[36m[0]\x1b[0m name? ")
    terminal.sendline("Ann")
    terminal.expect("Ann\r\n.*Ann\r\n")
    assert terminal.ended() == 0


def test_a_rank_that_is_ended_leaves_the_terminal_as_it_was(cli: Cli, tmp_path: Path) -> None:
    """Here, one that has turned the echo off; the other one fails then."""
    program = cli.write(
        f"""
        import pathlib, signal, termios
        off = pathlib.Path({str(tmp_path)!r}) / "off"
        if rank == 0:
            modes = termios.tcgetattr(0)
            modes[3] &= ~(termios.ECHO | termios.ICANON)
            termios.tcsetattr(0, termios.TCSANOW, modes)
            off.touch()
            signal.pause()
        while not off.exists():
            time.sleep(0.01)
        sys.exit(5)
        """
    )
    terminal = Terminal(*cli.command, "-n2", program)
    assert terminal.ended() == 5
    assert terminal.getecho()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signal_to_the_launcher(
    cli: Cli, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    program = cli.write(TELL_PID.format(directory=str(tmp_path)) + WAIT)
    with cli.started("-n2", program) as process:
        ranks = cli.pids(2)
        process.send_signal(number)
        assert process.wait(cli.deadline) == code
    assert not any(map(is_alive, ranks))


def test_ctrl_z_stops_the_ranks_too(cli: Cli, tmp_path: Path) -> None:
    program = cli.write(TELL_PID.format(directory=str(tmp_path)) + WAIT)

    with cli.started("-n2", program) as process:
        ranks = cli.pids(2)
        process.send_signal(signal.SIGTSTP)
        until(lambda: set(map(state_of, ranks)) == {"T"}, "the ranks are stopped")
        process.send_signal(signal.SIGCONT)
        until(lambda: set(map(state_of, ranks)) == {"S"}, "the ranks go on")
        process.send_signal(signal.SIGTERM)
        assert process.wait(cli.deadline) == 143


def test_death_of_the_witness_ends_the_run(cli: Cli, tmp_path: Path) -> None:
    program = cli.write(TELL_PID.format(directory=str(tmp_path)) + WAIT)
    with cli.started("-n2", "--sequencer", "witness", program) as process:
        ranks = cli.pids(2)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        (witness,) = (
            pid
            for pid in children
            if "orcalike.launcher.witness" in Path(f"/proc/{pid}/cmdline").read_text()
        )
        os.kill(int(witness), signal.SIGKILL)
        assert process.stderr
        assert process.stderr.readlines()[-1] == (
            f"orcalike: the witness (pid {witness}), which orders the writes, "
            "ended by SIGKILL (exit code 137); the ranks were stopped\n"
        )
        assert process.wait(cli.deadline) == 70
    assert not any(map(is_alive, ranks))


LEAVING_CHILDREN = """
import subprocess
with open({directory!r} + f"/directory{{rank}}", "w") as file:
    file.write(os.environ["ORCALIKE_RUNTIME_DIR"])
children = [subprocess.Popen(["sleep", "1000"], start_new_session=new) for new in {sessions}]
with open({directory!r} + f"/pid{{rank}}", "w") as file:
    print(os.getpid(), *(child.pid for child in children), file=file)
"""


def test_no_orphan_when_the_launcher_is_killed(cli: Cli, tmp_path: Path) -> None:
    program = cli.write(LEAVING_CHILDREN.format(directory=str(tmp_path), sessions=(False,)) + WAIT)
    with cli.started("-n3", program) as process:
        processes = cli.pids(6)
        directory = Path((tmp_path / "directory0").read_text())
        assert directory.is_dir()
        process.kill()
    until(lambda: not any(map(is_alive, processes)), "the ranks and their children have ended")
    until(lambda: not directory.exists(), "the runtime directory is removed")


def test_what_a_rank_leaves_behind_is_ended(cli: Cli, tmp_path: Path) -> None:
    program = cli.write(LEAVING_CHILDREN.format(directory=str(tmp_path), sessions=(False, True)))
    assert cli.run("-n2", program).returncode == 0
    assert not any(map(is_alive, cli.pids(6)))


def test_what_a_rank_leaves_behind_is_reaped_when_it_ends(cli: Cli) -> None:
    ended = cli.run("-n", "2", cli.write(LEAVES_MANY_THAT_END))
    assert ended.returncode == 3, ended.stderr


#: It leaves a process behind that is another user's by the time when this one ends.
LEAVES_ONE_OF_ANOTHER_USER = """
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.setuid(54321)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):
        os.dup2(null, standard)
    os.write(writer, b"x")
    time.sleep(1000)
os.read(reader, 1)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="to become another user takes root")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="to lose CAP_KILL takes setpriv")
def test_what_a_rank_leaves_behind_of_another_user_goes_on(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli.command = ("setpriv", "--bounding-set", "-kill", "--inh-caps", "-kill", *cli.command)
    ended = cli.run("-n", "2", cli.write(LEAVES_ONE_OF_ANOTHER_USER))
    left = re.findall(
        r"^orcalike: process (\d+) \(.+\), which a rank has left behind, "
        "belongs to another user and goes on$",
        ended.stderr,
        re.MULTILINE,
    )
    for pid in map(int, left):
        assert is_alive(pid)
        os.kill(pid, signal.SIGKILL)
    assert (ended.returncode, len(left)) == (0, 2), ended.stderr


def test_limits_of_more_than_the_kernel_waits(cli: Cli) -> None:
    """It takes 2**31 ms at the most, which are 24.8 days."""
    result = cli.run("-n1", "-q", "--timeout", "600h", cli.write("print('here')"))
    assert (result.returncode, result.stdout, result.stderr) == (0, "[0] here\n", "")


STOP_OUTPUT, GO_ON = "\x13", "\x11"
"""Ctrl-S and Ctrl-Q."""


TIME_LIMITS = (4, 40)
"""Seconds of a run: on a busy machine it takes longer until its ranks are as far as they are to be."""


def test_time_limit_holds_while_ctrl_s_stops_the_output(cli: Cli, tmp_path: Path) -> None:
    """And nothing of the output is lost for it."""
    program = cli.write(
        TELL_PID.format(directory=str(tmp_path)) + "while True: print('x' * 1000 + 'y')"
    )
    for seconds in TIME_LIMITS:
        flags = ("-n2", "--timeout", str(seconds), "--grace", "1", "--color", "never")
        terminal = Terminal(*cli.command, *flags, program)
        if all(terminal.expect([rf"\[{rank}\] x+y", EOF]) == 0 for rank in (0, 1)):
            break
    terminal.send(STOP_OUTPUT)
    ranks = cli.pids(2)
    until(lambda: not any(map(is_alive, ranks)), "the ranks have ended")
    terminal.send(GO_ON)
    assert terminal.ended() == 124
    lines = terminal.before.splitlines()
    assert lines[-1] == f"orcalike: timed out after {seconds} s"
    whole = [line for line in lines if re.fullmatch(r"\[[01]\] x{1000}y", line)]
    assert len(whole) > 100


# Stacks


HANGING = """
import threading
from orcalike.runtime import waits

def stuck_here():
    waits.enter("guard", "jobs", "JobQueue.get")
    print("ready", os.getpid())
    threading.Event().wait()

def helper():
    waits.enter("reply", "best", "Minimum.lower")
    threading.Event().wait()

threading.Thread(target=helper, name="helper", daemon=True).start()
while len(waits.waiting) == 0: pass
stuck_here()
"""


def test_timeout_shows_stacks_and_waits(cli: Cli) -> None:
    program = cli.write(HANGING)
    for seconds in TIME_LIMITS:
        result = cli.run("-n2", "--timeout", f"{seconds}s", program)
        assert result.returncode == 124
        assert result.stderr.splitlines()[-1] == f"orcalike: timed out after {seconds} s"
        if result.stdout.count("ready") == 2:
            break
    for rank in (0, 1):
        mine = "\n".join(line for line in result.stderr.splitlines() if f"[{rank}] " in line)
        assert "in stuck_here" in mine
        assert "in helper" in mine
        assert re.search(r"thread MainThread \(0x\w+\) waits \d+\.\d s: "
                         r"guard JobQueue\.get on 'jobs'", mine)  # fmt: skip
        assert re.search(r"thread helper \(0x\w+\) waits .* Minimum\.lower on 'best'", mine)


ACTIVITIES = {
    "computes": "def busy():\n    ready()\n    while True: pass\nbusy()",
    "sleeps": "def busy():\n    ready()\n    time.sleep(1000)\nbusy()",
    "awaits": "async def busy():\n    ready()\n    await asyncio.sleep(1000)\n"
    "import asyncio\nasyncio.run(busy())",
}


def test_sigusr1_to_the_launcher_shows_every_rank(cli: Cli) -> None:
    with cli.started("-n2", "-q", cli.write(HANGING)) as process:
        assert process.stdout
        assert process.stderr
        for _ in range(2):
            assert "ready" in process.stdout.readline()
        process.send_signal(signal.SIGUSR1)
        shown: set[str] = set()
        while len(shown) < 2:
            line = process.stderr.readline()
            assert line
            if "on 'jobs'" in line:
                shown.add(line[:4])


@pytest.mark.parametrize("activity", ACTIVITIES)
def test_sigusr1_shows_a_rank_and_lets_it_go_on(cli: Cli, activity: str) -> None:
    program = cli.write(
        "import orcalike.runtime.waits\ndef ready(): print(os.getpid())\n" + ACTIVITIES[activity]
    )
    with cli.started("-n1", "-q", "--no-prefix", program) as process:
        assert process.stdout
        assert process.stderr
        pid = int(process.stdout.readline())
        for _ in range(2):
            os.kill(pid, signal.SIGUSR1)
            seen = ""
            while "no thread waits" not in seen or "in busy" not in seen:
                line = process.stderr.readline()
                assert line, f"the rank ended: {seen}"
                seen += line
        process.send_signal(signal.SIGUSR1)
        while "in busy" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(cli.deadline) == 143
