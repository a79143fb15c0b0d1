"""`orcalike status` as a user meets it: what runs here, and how its groups stand."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orcalike.launcher.control_socket import CONNECTIONS_MAX, ask
from tests.lib import warm
from tests.lib.own_runs import LOOKING, ORCALIKE
from tests.lib.processes import parent_of, stop, until
from tests.lib.terminal import Terminal

if TYPE_CHECKING:
    from tests.lib.command import Cli

#: Each rank writes 10 times, rank 0 waits for a guard; then they stay until a line comes to rank 0.
PROGRAM = """
import threading
import orcalike as orca
from orcalike.objects import Counter, Event

@orca.shared
class Gate:
    def __init__(self): self.open = False
    @orca.write
    def enter(self): pass
    @enter.when
    def _may_enter(self): return self.open

with orca.join() as group:
    counter, done, gate = group.share(Counter, "n"), group.share(Event, "done"), group.share(Gate, "gate")
    for _ in range(10):
        counter.add(1)
    if rank == 0:
        waits = gate.enter.nowait()
    while time.process_time() < 0.05: pass  # the kernel tells it in hundredths of a second
    group.barrier()
    print("ready", flush=True)
    if rank == 0:
        sys.stdin.readline()
        waits.cancel()
        done.set()
    else:
        done.wait()
"""


pytestmark = pytest.mark.usefixtures("own_runs")


@pytest.fixture
def cli(tmp_path: Path) -> warm.WarmCli:
    """The command, for this test."""
    return warm.WarmCli(tmp_path)


def orcalike(*arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.python(*LOOKING, *arguments)


def status(*arguments: str) -> subprocess.CompletedProcess[str]:
    return orcalike("status", *arguments)


def runs() -> list[dict[str, Any]]:
    ended = status("--json")
    assert ended.returncode == 0, ended.stderr
    found: list[dict[str, Any]] = json.loads(ended.stdout)
    return found


def ready(process: subprocess.Popen[str], count: int) -> None:
    assert process.stdout
    said = [process.stdout.readline().split() for _ in range(count)]
    assert sorted(said) == [[f"[{rank}]", "ready"] for rank in range(count)]


def members_of(run: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    (group,) = run["groups"]
    assert group["name"] == "default"
    return {member["role"]: member for member in group["members"]}


def answered() -> dict[str, Any]:
    """How the only run stands, in a look in which all members answer: each has a second for it."""
    found: list[dict[str, Any]] = []

    def all_answer() -> bool:
        found[:] = runs()
        return all(each["answers"] for each in members_of(found[0]).values())

    until(all_answer, "all members answer")
    (run,) = found
    return run


def test_no_run_is_an_error() -> None:
    ended = status()
    assert (ended.returncode, ended.stdout) == (69, "")
    assert ended.stderr == "orcalike: no program of yours is running\n"
    assert status("--job", "beef").stderr == "orcalike: there is no run 'beef' of yours\n"


def test_how_a_program_stands(cli: Cli) -> None:
    program = cli.write(PROGRAM)
    with cli.started("--sequencer", "witness", "-n", "2", program) as process:
        ready(process, 2)
        run = answered()
        assert (run["program"], run["nprocs"]) == (program, 2)
        assert run["hosts"] == [socket.gethostname()]
        processes = {each["role"]: each for each in run["processes"]}
        assert processes.keys() == {0, 1, "witness"}
        for each in processes.values():
            assert each["host"] == socket.gethostname()
            assert os.path.exists(f"/proc/{each['pid']}")
            assert each["rss"] > 1 << 20
            assert each["cpu_seconds"] > 0 < each["age_seconds"]
            assert (each["state"], each["exit_code"], each["forked"]) == ("running", None, [])
        members = members_of(run)
        (group,) = run["groups"]
        assert (group["order"], group["sequencer"]) == ("sequencer", "witness")
        assert (group["primary"], group["resilience"]) == (True, 0)
        assert (group["missing"], group["rules"]) == ([], [])
        for rank in (0, 1):
            member = members[rank]
            assert (member["state"], member["size"], member["objects"]) == ("member", 2, 3)
            assert member["sent"] >= 10
            assert member["guarded"] == 1  # the same call, at each replica
            assert member["primary"]
        assert len({member["view"] for member in members.values()}) == 1
        until(lambda: {each["lag"] for each in members_of(runs()[0]).values()} == {0})
        table = status("--job", run["job"]).stdout
        assert re.search(
            rf"^job {run['job']} · {program} · up 0:\d\d:\d\d · 2 ranks on \S+$",
            table,
            re.MULTILINE,
        )
        title = r"^group default · view \d+ · primary · sequencer: witness · resilience 0$"
        assert re.search(title, table, re.MULTILINE)
        pid = processes[1]["pid"]
        row = rf"^1 +\S+ +{pid} +member +\d+% +\d+M +\d+ +\d+ +3 +1 +guard Event\._wait on 'done' \d+\.\d s$"
        until(lambda: re.search(row, status().stdout, re.MULTILINE))
        assert "\x1b" not in table
        process.communicate("\n", timeout=cli.deadline)
        assert process.wait(cli.deadline) == 0


def test_a_process_that_does_not_answer(cli: Cli) -> None:
    with cli.started("-n", "2", cli.write(PROGRAM)) as process:
        ready(process, 2)
        pid = {each["role"]: each["pid"] for each in runs()[0]["processes"]}[1]
        stop(pid)
        try:
            (run,) = runs()
            assert members_of(run)[1]["next"] is None
            assert not members_of(run)[1]["answers"]
            assert re.search(rf"^1 +\S+ +{pid} +no answer ", status().stdout, re.MULTILINE)
        finally:
            os.kill(pid, signal.SIGCONT)
        process.communicate("\n", timeout=cli.deadline)


@contextlib.contextmanager
def two_runs(cli: Cli) -> Iterator[None]:
    """Two programs that run until the block ends."""
    program = cli.write(PROGRAM)
    with cli.started("-n", "1", program) as one, cli.started("-n", "1", program) as other:
        ready(one, 1)
        ready(other, 1)
        yield
        for process in (one, other):
            process.communicate("\n", timeout=cli.deadline)


def test_a_run_that_is_stopped_is_named(cli: Cli) -> None:
    """By Ctrl-Z, say: it is there, and a verb that needs it says why it does nothing."""
    with two_runs(cli):
        jobs = [run["job"] for run in runs()]
        pids = {run["job"]: parent_of(run["processes"][0]["pid"]) for run in runs()}
        text = f"run {jobs[0]} does not answer: it is stopped"
        stop(pids[jobs[0]])
        try:
            shown = status("--json")
            assert ([run["job"] for run in json.loads(shown.stdout)], shown.stderr) == (
                jobs[1:],
                f"orcalike: {text}\n",
            )
            for verb in (("status", "--job", jobs[0]), ("chaos", "--job", jobs[0], "heal")):
                refused = orcalike(*verb)
                assert (refused.returncode, refused.stderr) == (69, f"orcalike: {text}\n")
            several = orcalike("chaos", "heal")
            assert several.returncode == 2
            assert f"\n  {text}\n" in several.stderr
        finally:
            os.kill(pids[jobs[0]], signal.SIGCONT)


def test_a_run_that_others_ask_is_asked_again(cli: Cli, own_runs: Path) -> None:
    """All its connections are taken, and each ends in some seconds."""
    with cli.started("-n", "1", cli.write(PROGRAM)) as process, contextlib.ExitStack() as stack:
        ready(process, 1)
        (path,) = own_runs.glob("orcalike/*/control")
        for _ in range(CONNECTIONS_MAX):
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(str(path))
        assert len(runs()) == 1
        process.communicate("\n", timeout=cli.deadline)


def test_questions_before_ranks_join_keep_no_report_from_them(cli: Cli) -> None:
    """Ranks that do not read their lines yet are asked again and again. Then they learn that another one has ended."""
    flag = cli.directory / "flag"
    program = f"""
import orcalike as orca
if rank != 1:
    print("ready", flush=True)
    while not os.path.exists({str(flag)!r}):
        time.sleep(0.01)
with orca.join() as group:
    group.barrier()
"""
    with cli.started("-n", "3", "--keep-going", "-q", cli.write(program)) as process:
        until(lambda: runs_or_none() and runs()[0]["groups"])
        (folder,) = (Path(os.environ["XDG_RUNTIME_DIR"]) / "orcalike").iterdir()
        for _ in range(QUESTIONS // AT_ONCE):
            with ThreadPoolExecutor(AT_ONCE) as threads:
                list(threads.map(lambda _: ask(folder, {"do": "status"}, 60), range(AT_ONCE)))
        os.kill(processes_of(runs()[0])[1]["pid"], signal.SIGKILL)
        until(lambda: processes_of(runs()[0])[1]["state"] == "left")
        flag.touch()
        assert process.wait(cli.deadline) == 0


QUESTIONS, AT_ONCE = 330, 6
"""More than the kernel keeps for a process that reads none; the launcher takes eight connections."""


def test_for_which_members_a_group_waits(cli: Cli) -> None:
    """Of three ranks one is cut off: it is blocked, and says for which members and by which rule."""
    with cli.started("-n", "3", cli.write(PROGRAM)) as process:
        ready(process, 3)
        (run,) = runs()
        cut = orcalike("chaos", "partition", "0,1/2")
        assert cut.returncode == 0, cut.stderr
        until(lambda: members_of(runs()[0])[2]["state"] == "blocked", pause=0.2)
        run = answered()
        assert members_of(run)[2]["waits_for"] == ["rank 0", "rank 1"]
        assert members_of(run)[2]["rule"] == "1 of 3 members are no majority"
        until(lambda: members_of(runs()[0])[0]["size"] == 2)
        assert run["groups"][0]["missing"] == ["rank 0", "rank 1"]
        assert run["groups"][0]["rules"] == ["1 of 3 members are no majority"]
        expected = (
            "rank 2 is blocked, and waits for rank 0 and rank 1: 1 of 3 members are no majority"
        )
        assert expected in status().stdout.splitlines()
        process.send_signal(signal.SIGINT)
        process.communicate("", cli.deadline)


def test_while_the_sequencer_fails_over(cli: Cli) -> None:
    """The witness, which orders, stands still, and then is gone: all others answer all the time."""
    with cli.started(
        "--sequencer", "witness", "--keep-going", "-n", "2", cli.write(PROGRAM)
    ) as process:
        ready(process, 2)
        processes = {each["role"]: each["pid"] for each in runs()[0]["processes"]}
        stop(processes["witness"])

        def others_answer() -> bool:
            members = members_of(runs()[0])
            witness = members.pop("witness", {"answers": False})  # they may have a view without it
            return all(each["answers"] for each in members.values()) and not witness["answers"]

        until(others_answer, "the others answer")
        os.kill(processes["witness"], signal.SIGKILL)
        until(lambda: runs()[0]["groups"][0]["sequencer"] in (0, 1), pause=0.2)
        (run,) = runs()
        witness = next(each for each in run["processes"] if each["role"] == "witness")
        known = (witness["state"], witness["signal"], witness["exit_code"], witness["pid"])
        assert known == ("left", "SIGKILL", 137, processes["witness"])
        assert re.search(r"^witness +\S+ +\d+ +left \(SIGKILL\)  ", status().stdout, re.MULTILINE)
        process.communicate("\n", timeout=cli.deadline)


def test_how_ranks_have_ended_and_what_is_in_no_group(cli: Cli) -> None:
    program = "print('ready', flush=True)\nsys.exit(3) if rank == 0 else time.sleep(1000)"
    with cli.started(
        "-n", "2", "--keep-going", "--sequencer", "rank", cli.write(program)
    ) as process:
        ready(process, 2)
        until(lambda: runs()[0]["processes"][-1]["state"] == "left")
        (run,) = runs()
        assert [(each["role"], each["exit_code"]) for each in run["processes"]] == [
            (1, None),
            (0, 3),
        ]
        assert run["groups"] == []
        table = status().stdout
        assert "\nin no group\n" in table
        assert re.search(r"^0 +\S+ +\d+ +left \(exit 3\) ", table, re.MULTILINE)
        assert re.search(r"^1 +\S+ +\d+ +running +\d+% ", table, re.MULTILINE)
        process.send_signal(signal.SIGINT)
        process.communicate("", cli.deadline)


def test_a_rank_that_joins_and_one_that_is_started_again(cli: Cli) -> None:
    """Rank 0 waits for rank 1, which fails until a file is there."""
    flag = cli.directory / "flag"
    program = f"""
import orcalike as orca
if rank == 1 and not os.path.exists({str(flag)!r}):
    sys.exit(5)
with orca.join() as group:
    print("ready", flush=True)
    time.sleep(1000)
"""
    with cli.started("-n", "2", "--restart", "1000", cli.write(program)) as process:
        until(lambda: runs_or_none() and is_restarting_after(5), pause=0.1)
        wait = "view join the group"
        until(lambda: wait in status().stdout)
        flag.touch()
        ready(process, 2)
        assert processes_of(runs()[0])[1]["state"] == "running"
        process.send_signal(signal.SIGINT)
        process.communicate("", cli.deadline)


def runs_or_none() -> bool:
    return status().returncode == 0


def is_restarting_after(code: int) -> bool:
    """Whether rank 1 is to be started again, in one look: it is, again and again, for moments."""
    rank = processes_of(runs()[0]).get(1)
    return bool(rank and rank["state"] == "restarting" and rank["exit_code"] == code)


def processes_of(run: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    return {each["role"]: each for each in run["processes"]}


def test_names_are_shown_in_a_line_and_cannot_write_to_the_terminal(cli: Cli) -> None:
    """Those of groups, objects and programs; other letters than ASCII's stay as they are."""
    odd = PROGRAM.replace("orca.join()", r'orca.join("grüße\x1b[1m\nx\x9b")')
    odd = odd.replace('"gate")', r'"\x1b]0;title\x07")')
    with cli.started("-n", "2", cli.write(odd, "prog\x1b[31m.py")) as process:
        ready(process, 2)
        shown = [orcalike(*words).stdout for words in (("status", "--ring"), ("objects",))]
        shown += [orcalike(word, "--json").stdout for word in ("status", "objects")]
        for text in shown:
            assert not [each for each in text if not (each.isprintable() or each == "\n")]
        assert r"group grüße\x1b[1m\nx\x9b · view" in shown[0]
        assert r"order of group grüße\x1b[1m\nx\x9b in shared memory" in shown[0]
        assert r" · prog\x1b[31m.py · " in shown[0].replace(str(cli.directory) + "/", "")
        assert re.search(r"^\\x1b\]0;title\\x07 +Gate +grüße", shown[1], re.MULTILINE)
        (group,) = json.loads(shown[2])[0]["groups"]
        assert group["name"] == "grüße\x1b[1m\nx\x9b"
        process.communicate("\n", timeout=cli.deadline)


def test_groups_that_were_left_are_not_asked_for(cli: Cli) -> None:
    """A process that has left one group answers for its others."""
    leaving = PROGRAM.replace(
        "group:\n", 'group:\n    with orca.join("other") as other: other.barrier()\n'
    )
    with cli.started("-n", "2", cli.write(leaving)) as process:
        ready(process, 2)
        for _ in range(2):
            assert len(members_of(answered())) == 2
        process.communicate("\n", timeout=cli.deadline)


def test_one_of_several_runs(cli: Cli) -> None:
    with two_runs(cli):
        jobs = [run["job"] for run in runs()]
        assert len(jobs) == 2
        assert [run["job"] for run in json.loads(status("--json", "--job", jobs[1]).stdout)] == [
            jobs[1]
        ]
        assert status().stdout.count("\njob ") == 1  # and one at the beginning


def test_which_objects_there_are(cli: Cli) -> None:
    with cli.started("-n", "2", cli.write(PROGRAM)) as process:
        ready(process, 2)
        (run,) = runs()
        assert run["groups"][0]["objects"] == []  # they are listed if they are asked for
        found: list[dict[str, Any]] = []

        def complete() -> object:
            found[:] = json.loads(orcalike("objects", "--json").stdout)
            return len(found) == 3 and sum(each["blocked"] for each in found) == 2

        until(complete)
        known = [(each["name"], each["class"], each["blocked"]) for each in found]
        assert known == [
            ("done", "orcalike.objects.events:Event", 1),  # a read, of rank 1
            ("gate", "prog:Gate", 1),
            ("n", "orcalike.objects.counters:Counter", 0),
        ]
        assert {(each["replicas"], each["resilience"], each["queued"]) for each in found} == {
            (2, 0, 0)
        }
        assert {(each["job"], each["group"]) for each in found} == {(run["job"], "default")}
        table = orcalike("objects").stdout
        assert re.search(
            r"^NAME +CLASS +GROUP +RES +REPLICAS +BLOCKED +QUEUED$", table, re.MULTILINE
        )
        assert re.search(r"^gate +Gate +default +0 +2 +1 +0$", table, re.MULTILINE)
        process.communicate("\n", timeout=cli.deadline)
    assert orcalike("objects").returncode == 69


def test_columns_stand_below_each_other_whatever_letters_are_in_them(cli: Cli) -> None:
    """Letters of Japanese are two columns wide, and a combining mark takes none."""
    wide = PROGRAM.replace('"n")', '"日本e\u0301")')
    with cli.started("-n", "2", cli.write(wide)) as process:
        ready(process, 2)
        lines = orcalike("objects").stdout.splitlines()
        (line,) = (line for line in lines if line.startswith("日本"))
        assert line.index("Counter") == lines[0].index("CLASS") - 2 + 1
        process.communicate("\n", timeout=cli.deadline)


@pytest.mark.parametrize("words", [("status", "--watch", "0"), ("top", "--each", "1ms")])
def test_looks_that_follow_too_soon_are_refused(words: tuple[str, ...]) -> None:
    ended = orcalike(*words)
    assert ended.returncode == 2
    assert "0.1 seconds at the least" in ended.stderr


def test_it_watches_until_ctrl_c(cli: Cli) -> None:
    with cli.started("-n", "1", cli.write(PROGRAM)) as process:
        ready(process, 1)
        terminal = Terminal(sys.executable, *LOOKING, "status", "--watch", "0.2")
        for _ in range(2):
            terminal.expect("order: shared memory")
        terminal.sendintr()
        assert terminal.ended() == 0
        terminal = Terminal(sys.executable, *LOOKING, "status", "--watch", "99999999999999")
        terminal.expect("order: shared memory")
        terminal.sendintr()
        assert terminal.ended() == 0
        assert "Traceback" not in terminal.before
        process.communicate("\n", timeout=cli.deadline)


def test_it_watches_until_the_program_ends(cli: Cli) -> None:
    with cli.started("-n", "1", cli.write(PROGRAM)) as process:
        ready(process, 1)
        command = [*ORCALIKE, "status", "--watch"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as watcher:
            assert watcher.stdout
            assert watcher.stdout.readline().startswith("job ")
            process.communicate("\n", timeout=cli.deadline)
            output, errors = watcher.communicate(timeout=cli.deadline)
    assert (watcher.returncode, errors) == (0, "orcalike: the program has ended\n")
    assert "\x1b" not in output
