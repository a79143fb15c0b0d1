"""Runs that go on after a failure: `--keep-going`, `--restart`, and those that cannot go on."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lib.terminal import Terminal
from tests.lib.warm import WarmCli

if TYPE_CHECKING:
    from tests.lib.command import Cli

#: A rank's way to wait until it is ended.
WAIT = "import signal; signal.pause()"
#: How often this rank was started again, and a file that it makes known to the others.
AGAIN = "again = int(os.environ['ORCALIKE_RESTART_COUNT'])\n"


@pytest.fixture
def cli(tmp_path: Path) -> WarmCli:
    """The command, for this test."""
    return WarmCli(tmp_path)


def lines(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


# --keep-going


def test_others_go_on_after_a_failure(cli: Cli, tmp_path: Path) -> None:
    program = cli.write(
        f"""
        import pathlib
        failed = pathlib.Path({str(tmp_path)!r}, "failed")
        if rank == 1:
            failed.write_text(f"{{os.getpid()}}\\n")
            1 / 0
        while not (failed.exists() and failed.read_text().endswith("\\n")): time.sleep(0.01)
        while pathlib.Path("/proc", failed.read_text().strip()).exists(): time.sleep(0.01)
        print("finished")
        """
    )
    result = cli.run("-n3", "--keep-going", program)
    assert result.returncode == 0
    assert sorted(result.stdout.splitlines()) == ["[0] finished", "[2] finished"]
    assert "[1] ZeroDivisionError: division by zero" in result.stderr
    (said,) = lines(result.stderr, "orcalike: ")
    assert re.fullmatch(
        r"orcalike: rank 1 \(pid \d+\) failed with exit code 1 after \d+\.\d\d s; 2 others go on",
        said,
    )
    assert " · keep going" in result.stderr.splitlines()[0]
    assert result.stderr.splitlines()[-1].endswith(" s · rank 1 failed")


#: A program whose first ranks end before they join; the others are members of two groups.
WITHOUT_FIRST = """
if rank < 2:
    sys.exit({code})
with orca.join() as group, orca.join("other") as other:
    for each in group, other:
        each.share(Counter, "counter").add(1)
        each.barrier()
        print("at the end", each.find(Counter, "counter").value)
"""
IMPORTS = "import orcalike as orca\nfrom orcalike.objects import Counter\n"


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ((), 0),
        (("--keep-going",), 0),
        (("--keep-going",), 1),
        (("--sequencer", "rank"), 0),
        (("--sequencer", "rank", "--tcp", "--keep-going"), 1),
        (("--sequencer", "witness", "--keep-going"), 1),
    ],
    ids=str,
)
def test_first_ranks_that_never_join(cli: Cli, flags: tuple[str, ...], code: int) -> None:
    """The next one makes the groups: the others would wait for rank 0."""
    program = cli.write(IMPORTS + WITHOUT_FIRST.format(code=code))
    result = cli.run("-n4", "--timeout", f"{cli.deadline:g}s", *flags, program)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == [
        *["[2] at the end 2"] * 2,
        *["[3] at the end 2"] * 2,
    ]


def test_failure_of_the_last_rank_is_forgiven_if_another_ended_well(
    cli: Cli, tmp_path: Path
) -> None:
    program = cli.write(
        f"""
        import pathlib
        well = pathlib.Path({str(tmp_path)!r}, "well")
        if rank == 0:
            well.write_text(f"{{os.getpid()}}\\n")
            sys.exit(0)
        while not (well.exists() and well.read_text().endswith("\\n")): time.sleep(0.01)
        while pathlib.Path("/proc", well.read_text().strip()).exists(): time.sleep(0.01)
        sys.exit(3)
        """
    )
    result = cli.run("-n2", "-q", "--keep-going", program)
    assert result.returncode == 0
    assert "failed with exit code 3" in result.stderr
    assert "no other is left" in result.stderr


def test_first_code_if_all_ranks_fail(cli: Cli, tmp_path: Path) -> None:
    program = cli.write(
        f"""
        import pathlib
        first = pathlib.Path({str(tmp_path)!r}, "first")
        if rank == 1:
            first.write_text(f"{{os.getpid()}}\\n")
            sys.exit(7)
        while not (first.exists() and first.read_text().endswith("\\n")): time.sleep(0.01)
        while pathlib.Path("/proc", first.read_text().strip()).exists(): time.sleep(0.01)
        os.kill(os.getpid(), 9)
        """
    )
    result = cli.run("-n2", "-q", "--keep-going", program)
    assert result.returncode == 7
    assert re.search(
        r"orcalike: rank 0 \(pid \d+\) was killed by SIGKILL \(exit code 137\) after .* s; "
        r"no other is left\n"
        r"orcalike: all ranks failed; rank 1 \(pid \d+\) failed first with exit code 7 after .* s\n$",
        result.stderr,
    )


def test_death_of_the_witness_is_survived(cli: Cli, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    program = cli.write(
        f"""
        import pathlib
        print("ready")
        while not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.01)
        """
    )
    with cli.started("-n2", "-q", "--keep-going", "--sequencer", "witness", program) as process:
        assert process.stdout
        assert process.stderr
        for _ in range(2):
            assert "ready" in process.stdout.readline()
        kill_witness(process.pid)
        assert re.fullmatch(
            r"orcalike: the witness \(pid \d+\) ended by SIGKILL \(exit code 137\); "
            r"the ranks go on, and one of them orders\n",
            process.stderr.readline(),
        )
        go_on.touch()
        assert process.wait(cli.deadline) == 0


def kill_witness(launcher: int) -> None:
    """Kill the launcher's child that is the witness."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    (witness,) = (
        int(pid)
        for pid in children
        if "orcalike.launcher.witness" in Path(f"/proc/{pid}/cmdline").read_text()
    )
    os.kill(witness, signal.SIGKILL)


# --restart


@pytest.mark.parametrize("scheme", ["--unix", "--tcp"])
def test_rank_is_started_again_in_its_place(cli: Cli, scheme: str) -> None:
    program = cli.write(
        AGAIN
        + """
print(again, os.environ["ORCALIKE_LISTEN"], os.environ["ORCALIKE_SEEDS"], os.getpid())
if rank == 1 and again == 0: os.kill(os.getpid(), 9)
if rank == 1 and again == 1: 1 / 0
"""
    )
    result = cli.run("-n2", "--restart", "2", scheme, program)
    assert result.returncode == 0
    mine = [line.split() for line in lines(result.stdout, "[1]")]
    assert [line[1] for line in mine] == ["0", "1", "2"]
    assert len({(line[2], line[3]) for line in mine}) == 1
    assert mine[0][2] in mine[0][3].split(",")
    assert len({line[4] for line in mine}) == 3
    said = lines(result.stderr, "orcalike: ")
    assert re.fullmatch(
        r"orcalike: rank 1 \(pid \d+\) was killed by SIGKILL \(exit code 137\) after \d+\.\d\d s; "
        r"restarting \(1 of 2\)",
        said[0],
    )
    assert re.fullmatch(
        r"orcalike: rank 1 \(pid \d+\) failed with exit code 1 after \d+\.\d\d s; "
        r"restarting in 0.5 s \(2 of 2\)",
        said[1],
    )
    assert result.stderr.count("ZeroDivisionError: division by zero") == 1


def test_restarted_rank_listens_where_it_did(cli: Cli) -> None:
    """Over TCP the launcher keeps the port; a connection in the meantime is refused at once."""
    program = cli.write(
        AGAIN
        + """
import socket
host, port = os.environ["ORCALIKE_LISTEN"].removeprefix("tcp:").split(":")
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
refused = listener.connect_ex((host, int(port)))
listener.close()
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((host, int(port)))
listener.listen()
print(again, os.strerror(refused))
sys.exit(again < 2)
"""
    )
    result = cli.run("-n1", "-q", "--tcp", "--sequencer", "witness", "--restart", "2", program)
    assert result.returncode == 0
    assert result.stdout == "".join(f"[0] {again} Connection refused\n" for again in range(3))


def test_rank_that_fails_too_often_ends_the_run(cli: Cli) -> None:
    program = cli.write(f"if rank == 0: sys.exit(5)\n{WAIT}")
    result = cli.run("-n2", "-q", "--restart", "1", program)
    assert result.returncode == 5
    assert re.fullmatch(
        r"orcalike: rank 0 \(pid \d+\) failed with exit code 5 after \d+\.\d\d s; "
        r"it had been started again once; 1 other stopped",
        result.stderr.splitlines()[-1],
    )


def test_rank_that_fails_too_often_is_given_up_with_keep_going(cli: Cli) -> None:
    program = cli.write("sys.exit(5 if rank == 0 else 0)")
    result = cli.run("-n2", "-q", "--restart", "2", "--keep-going", program)
    assert result.returncode == 0
    said = lines(result.stderr, "orcalike: rank 0")
    assert [line.rpartition("; ")[2] for line in said] == [
        "restarting (1 of 2)",
        "restarting in 0.5 s (2 of 2)",
        "no other is left",
    ]


def test_program_that_is_not_there_is_not_started_again(cli: Cli, tmp_path: Path) -> None:
    cli.write("", "pack/__init__.py")
    for flags in (("--restart", "3"), ("--keep-going",)):
        result = cli.run("-n2", "-q", *flags, "-m", "pack.inner", cwd=tmp_path)
        assert (result.returncode, result.stderr) == (2, "orcalike: no module named 'pack.inner'\n")


def test_what_a_failed_rank_had_started_goes_with_it(cli: Cli, tmp_path: Path) -> None:
    program = cli.write(
        AGAIN
        + f"""
import subprocess, pathlib
note = pathlib.Path({str(tmp_path)!r}, "child")
if not again:
    note.write_text(str(subprocess.Popen(["sleep", "1000"]).pid))
    sys.exit(1)
stat = pathlib.Path("/proc", note.read_text(), "stat")
while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z": time.sleep(0.01)
"""
    )
    assert cli.run("-n1", "-q", "--restart", "1", program).returncode == 0


def test_ctrl_c_ends_a_run_that_would_start_a_rank_again(cli: Cli) -> None:
    """In a terminal: while nothing runs but the pause before the next start."""
    program = cli.write("sys.exit(1)")
    terminal = Terminal(*cli.command, "-n1", "--restart", "1000", program)
    terminal.expect("in 2 s ")
    terminal.sendintr()
    assert terminal.ended() == 130


def test_witness_is_started_again(cli: Cli, tmp_path: Path) -> None:
    """At the same address; its environment says which groups there are."""
    go_on = tmp_path / "go on"
    program = cli.write(
        f"""
        import pathlib, socket
        from orcalike.launch_protocol import control_channel
        control_channel.report_unblocked("jobs")
        print("ready")
        while not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.01)
        place = os.environ["ORCALIKE_ADDRESS"].removeprefix("unix:")
        socket.socket(socket.AF_UNIX).connect(place)
        def is_witness(entry):
            try:
                return entry.name.isdigit() and f"unix:{{place}}" in (entry / "cmdline").read_text()
            except OSError:  # it has ended meanwhile
                return False
        found = []
        while not found:  # the launcher keeps the socket until the witness has begun
            found = [entry for entry in pathlib.Path("/proc").iterdir() if is_witness(entry)]
        environment = (found[0] / "environ").read_text().split("\\0")
        print([line for line in environment if "FORMED" in line or "RESTART" in line])
        """
    )
    flags = ("-n1", "-q", "--no-prefix", "--restart", "1", "--sequencer", "witness")
    with cli.started(*flags, program) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "ready\n"
        kill_witness(process.pid)
        assert process.stderr.readline().endswith("; restarting (1 of 1)\n")
        go_on.touch()
        found = process.stdout.readline()
        assert "'ORCALIKE_FORMED=jobs'" in found
        assert "'ORCALIKE_RESTART_COUNT=1'" in found
        assert process.wait(cli.deadline) == 0


# Of what the others are notified


RECEIVING = """
from orcalike.launch_protocol import control_channel
import queue
received = queue.SimpleQueue()
control_channel.listen(lambda ranks: received.put(("ended", sorted(ranks))))
control_channel.listen_died(lambda incarnation: received.put(("died", incarnation)))
control_channel.report_joining("default", 100 * rank + again)
"""


def test_all_are_notified_which_members_ended_and_which_died(cli: Cli) -> None:
    program = cli.write(
        AGAIN
        + RECEIVING
        + """
if rank == 1 and again == 0: sys.exit(1)
if rank == 1: print("again", *(received.get() for _ in range(1)))
if rank in (0, 2): print(*(received.get() for _ in range(3)))
"""
    )
    result = cli.run("-n3", "-q", "--restart", "1", program)
    assert result.returncode == 0
    assert "[1] again ('died', 100)" in result.stdout
    first, second = lines(result.stdout, "[0]"), lines(result.stdout, "[2]")
    shown = "('died', 100) ('died', 101) ('ended', [1])"
    assert f"[0] {shown}" in first or f"[2] {shown}" in second


# Runs that cannot go on


BLOCKED = """
from orcalike.launch_protocol import control_channel
from orcalike.launch_protocol.control_lines import Described
from orcalike.launch_protocol.descriptions import Description
from orcalike.transport.view import Member
def answer(question):
    found = Described(question.number, "default", Description(1, 2, False, False, 0, 0, 0, 0, 0))
    control_channel.report_state(found)
control_channel.listen_describe(answer)
def member(rank, again=0): return Member("", 100 * rank + again, rank)
control_channel.report_joining("default", 100 * rank + again)
if not again: control_channel.report_unblocked("default")
"""


def test_run_that_is_blocked_for_good_ends(cli: Cli) -> None:
    program = cli.write(
        AGAIN
        + BLOCKED
        + """
if rank in (1, 2): os.kill(os.getpid(), 9)
control_channel.report_blocked("default", [member(1), member(2)], "2 of 4 members, and not the oldest")
import signal; signal.pause()
"""
    )
    result = cli.run("-n4", "-q", "--keep-going", program)
    assert result.returncode == 74
    assert result.stderr.splitlines()[-1] == (
        "orcalike: blocked for good: the group waits for rank 1 and rank 2, which have ended "
        "(2 of 4 members, and not the oldest); the ranks were stopped. A higher resilience degree "
        "survives more; with --restart a lost rank is replaced before the next one is lost"
    )


def test_run_that_is_blocked_for_good_ends_though_none_is_missed_any_more(cli: Cli) -> None:
    """All that were missed have ended, and no survivor can say what they had decided."""
    program = cli.write(
        AGAIN
        + BLOCKED
        + """
if rank in (1, 2): os.kill(os.getpid(), 9)
control_channel.report_blocked("default", [], "1 of 3 members are no majority")
import signal; signal.pause()
"""
    )
    result = cli.run("-n3", "-q", "--keep-going", "--timeout", f"{cli.deadline:g}s", program)
    assert result.returncode == 74
    assert (
        "blocked for good: each member that the group misses has ended (1 of 3 members are no majority)"
        in result.stderr.splitlines()[-1]
    )


def test_starting_again_does_not_bring_back_what_was_lost(cli: Cli) -> None:
    """Rank 0 alone had the state: the process in its place does not wait to be let in."""
    program = cli.write(
        AGAIN + BLOCKED + "if not again: sys.exit(1)\nprint('waits')\nimport signal; signal.pause()"
    )
    result = cli.run("-n1", "-q", "--restart", "3", program)
    assert result.returncode == 74
    assert result.stdout == "[0] waits\n"
    assert "all processes that were in the group have ended" in result.stderr


def test_the_others_go_on_if_rank_0_has_ended_before_it_joined(cli: Cli) -> None:
    program = cli.write(
        "if rank == 0: sys.exit(3)\nimport orcalike as orca\nwith orca.join() as group: print('in')"
    )
    result = cli.run("-n3", "-q", "--keep-going", "--no-prefix", program)
    assert (result.returncode, result.stdout) == (0, "in\nin\n"), result.stderr


ALL_END = """
import orcalike as orca
with orca.join() as group:
    print("in view", group.view.number, flush=True)
    group.barrier()
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("order", [(), ("--sequencer", "witness"), ("--tcp",)])
@pytest.mark.parametrize("ranks", ["1", "3"])
def test_a_run_goes_on_when_its_members_have_all_ended(
    cli: Cli, ranks: str, order: tuple[str, ...]
) -> None:
    """It is the same group each time, whatever orders; the rank that fails once more ends the run."""
    program = cli.write(AGAIN + ALL_END)
    result = cli.run("-n", ranks, "-q", "--no-prefix", "--restart", "3", *order, program)
    assert result.returncode == 137, result.stderr
    assert "it had been started again 3 times" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    views = [int(line.split()[-1]) for line in result.stdout.splitlines()]
    assert len(views) >= 4
    assert views == sorted(views)


@pytest.mark.parametrize("ranks", ["1", "3"])
def test_a_run_without_a_witness_whose_members_have_all_ended_ends(cli: Cli, ranks: str) -> None:
    """Though there is no other rank that the one in its place could ask."""
    program = cli.write(AGAIN + ALL_END)
    result = cli.run("-n", ranks, "-q", "--restart", "3", "--sequencer", "rank", program)
    assert result.returncode == 74, result.stderr
    assert "blocked for good: " in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_run_waits_for_a_survivor_that_is_stopped(cli: Cli) -> None:
    """It has not received that those it misses are dead, and goes on as soon as it does."""
    program = cli.write(
        AGAIN
        + BLOCKED
        + """
import signal, subprocess
if rank == 1: os.kill(os.getpid(), 9)
control_channel.report_blocked("default", [member(1)], "1 of 2 members are no majority")
subprocess.Popen(["sh", "-c", f"sleep 6; kill -CONT {os.getpid()}"])
os.kill(os.getpid(), signal.SIGSTOP)
control_channel.report_unblocked("default")
print("goes on")
"""
    )
    result = cli.run("-n2", "-q", "--keep-going", "--no-prefix", program)
    assert (result.returncode, result.stdout) == (0, "goes on\n"), result.stderr


def test_run_waits_for_members_that_live(cli: Cli, tmp_path: Path) -> None:
    """Rank 1 is missed, and lives: rank 0 waits for it longer than a lost one is waited for."""
    program = cli.write(
        AGAIN
        + BLOCKED
        + """
if rank == 0: control_channel.report_blocked("default", [member(1)], "rank 1 is the oldest")
time.sleep(4.5)
control_channel.report_unblocked("default")
"""
    )
    assert cli.run("-n2", "-q", "--keep-going", program).returncode == 0
