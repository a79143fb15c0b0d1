"""`group.fork` as a user meets it: processes of the program that run a function as members."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.lib import warm
from tests.lib.fake_ssh import FakeSsh
from tests.lib.own_runs import LOOKING
from tests.lib.processes import is_alive, until

if TYPE_CHECKING:
    from tests.lib.command import Cli

HEAD = """
import logging
import orcalike as orca
from orcalike.objects import Counter, Event, List

"""
#: Workers take numbers from a queue, and add them up.
WORKERS = (
    HEAD
    + """
from orcalike.objects import Queue

@orca.register
def work(group, jobs, total, ranks):
    ranks.append(group.rank)
    while (job := jobs.get()) is not None:
        total.add(job)

def main():
    with orca.join() as group:
        jobs, total = group.share(Queue, "jobs"), group.share(Counter, "total")
        ranks = group.share(List, "ranks")
        if group.rank == 0:
            places = [int(text) for text in sys.argv[1].split(",")]
            started = [group.fork.nowait(work, jobs, total, ranks, on=on) for on in places]
            members = [each.result() for each in started]
            for job in range(100):
                jobs.put(job)
            for _ in members:
                jobs.put(None)
        group.barrier()  # each rank has been asked
    if group.rank == 0:  # the workers have ended
        assert sorted(member.rank for member in members) == sorted(ranks), (members, ranks)
        print(total.get(), len(set(ranks)), min(ranks), flush=True)

if __name__ == "__main__":
    main()
"""
)


@pytest.fixture
def cli(tmp_path: Path) -> warm.WarmCli:
    """The command, for this test."""
    return warm.WarmCli(tmp_path)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is left behind in the folder for temporary files."""
    folder = tmp_path / "t"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder) if len(str(folder)) < 60 else "/tmp")
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    yield
    assert list(folder.iterdir()) == []


def python(cli: Cli, source: str, *arguments: str, **options: Any) -> Any:
    """A program that no launcher has started, to its end."""
    return subprocess.run(
        [sys.executable, cli.write(source), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=cli.deadline,
        **options,
    )


def started(cli: Cli, source: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, cli.write(source), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_program_that_starts_its_workers(cli: Cli) -> None:
    """No launcher is there: the group of one listens, since a function is registered."""
    ended = python(cli, WORKERS, "0,0")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "4950 2 1\n", "")


def test_on_other_ranks(cli: Cli) -> None:
    """They never have the ranks of the launcher's processes; two hosts may start some at once.

    Over Unix sockets: `test_a_worker_forks_in_its_turn`.
    """
    pytest.importorskip("cryptography")
    program = cli.write(WORKERS)
    ended = cli.run("--tcp", "--sequencer", "witness", "-q", "-n", "2", program, "1,0,1")
    assert (ended.returncode, ended.stdout) == (0, "[0] 4950 3 2\n"), ended.stderr


ON_ANOTHER_HOST = (
    HEAD
    + """
@orca.register
def work(group, hosts, done):
    hosts.append(os.environ["HOST_NAME"])
    done.set()

def main():
    with orca.join() as group:
        hosts, done = group.share(List, "hosts"), group.share(Event, "done")
        if group.rank == 0:
            member = group.fork(work, hosts, done, on=1)
            done.wait()
            print(os.environ["HOST_NAME"], *hosts, member.rank, flush=True)
        group.barrier()

if __name__ == "__main__":
    main()
"""
)


def test_on_a_rank_of_another_host(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is started where that rank is, and not where it is asked for."""
    pytest.importorskip("cryptography")
    monkeypatch.setenv("ORCALIKE_SSH", str(FakeSsh(tmp_path).path))
    ended = cli.run("-H", "a,b", "-q", cli.write(ON_ANOTHER_HOST))
    assert (ended.returncode, ended.stdout) == (0, "[0] a b 2\n"), ended.stderr


def test_in_coroutines(cli: Cli) -> None:
    source = (
        HEAD
        + """
import asyncio

@orca.register
def work(group, counter, by):
    counter.add(by)

async def main():
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "n")
        members = await asyncio.gather(*(group.fork.aio(work, counter, by) for by in (1, 2)))
        assert all(member.rank for member in members)
    return counter.get()

if __name__ == "__main__":
    print(asyncio.run(main()))
"""
    )
    ended = python(cli, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "3\n", "")


def test_a_worker_forks_in_its_turn(cli: Cli) -> None:
    """Each process waits for those that it hosts; their output comes where their host's does."""
    source = (
        HEAD
        + """
@orca.register
def work(group, depth):
    print("depth", depth, "rank", group.rank, flush=True)
    if depth < 2:
        group.fork(work, depth + 1)

if __name__ == "__main__":
    with orca.join() as group:
        if group.rank == 1:
            group.fork(work, 1)
    print("end", flush=True)
"""
    )
    ended = cli.run("-q", "-n", "2", cli.write(source))
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stdout.splitlines() if line.startswith("[1]")]
    assert [re.sub(r"\d+$", "N", line) for line in lines] == [
        "[1] depth 1 rank N",
        "[1] depth 2 rank N",
        "[1] end",
    ]
    assert {line.split()[-1] for line in lines[:2]} <= {"2", "3"}


REFUSALS = (
    HEAD
    + """
logging.basicConfig(level=logging.CRITICAL)

@orca.register
def work(group, *values): pass

@orca.register
def other(group): pass

def plain(group): pass

def attempt(function, *args, **options):
    try:
        print("member", group.fork(function, *args, **options))
    except Exception as error:
        print(type(error).__name__, error, flush=True)

if __name__ == "__mp_main__" and os.environ.get("EXITS"):
    os._exit(9)
if __name__ == "__mp_main__" and os.environ.get("RAISES"):
    raise KeyError("in the program")

if __name__ == "__main__":
    if rank == 1:
        from orcalike.runtime import registered
        del registered.functions["prog:other"]
    with orca.join() as group:
        if rank == 0:
            attempt(work, on=7)
            attempt(plain)
            attempt(other, on=1)
        group.barrier()  # rank 1 has been asked
        if rank == 0:
            attempt(work, object())
            os.environ["EXITS"] = "1"
            attempt(work)
            del os.environ["EXITS"]
            os.environ["RAISES"] = "1"
            attempt(work)
            del os.environ["RAISES"]
            from orcalike.session import forking
            forking.HOSTED_MAX = 0
            attempt(work)
            forking.HOSTED_MAX = 1
            while group._hosted.describe():  # the one before has not ended yet
                time.sleep(0.01)
            attempt(work)
"""
)


def test_what_is_refused_and_what_fails(cli: Cli) -> None:
    ended = cli.run("-q", "--no-prefix", "-n", "2", cli.write(REFUSALS))
    assert ended.returncode == 0, ended.stderr
    failed = r"ForkFailed rank 0 \(.*\) started no member: a process \(pid \d+, prog:work\)"
    expected = [
        r"ForkFailed there is no member of rank 7 that could start a process: there are 0 and 1",
        r"DeclarationError <function plain at .*> is not registered: write @orcalike\.register above it.*",
        r"ForkFailed rank 1 \(.*\) started no member: it has registered no function prog:other: .*",
        r"NotSerializable .*",
        rf"{failed} ended with exit code 9 before it had joined",
        rf"{failed} failed: KeyError: 'in the program'",
        r"ForkFailed rank 0 \(.*\) started no member: it hosts 0 processes already, .*",
        r"member rank \d \(.*\)",
    ]
    lines = ended.stdout.splitlines()
    assert len(lines) == len(expected), ended.stdout
    for line, pattern in zip(lines, expected, strict=True):
        assert re.fullmatch(pattern, line), line


def test_a_program_that_runs_when_it_is_imported(cli: Cli) -> None:
    source = (
        HEAD
        + """
@orca.register
def work(group): pass

with orca.join() as group:
    group.fork(work)
"""
    )
    ended = python(cli, source)
    assert ended.returncode == 1
    assert 'put what it runs under `if __name__ == "__main__":`' in ended.stderr
    assert "ForkFailed: rank 0" in ended.stderr


def test_a_group_of_one_that_does_not_listen(cli: Cli) -> None:
    source = (
        HEAD
        + """
def work(group): pass

with orca.join() as group:
    orca.register(work)
    group.fork(work)
"""
    )
    ended = python(cli, source)
    assert ended.returncode == 1
    assert "ForkFailed: this group of one has no address" in ended.stderr


def test_a_worker_that_fails_is_named_by_its_host(cli: Cli) -> None:
    """Its traceback begins with the function, and its host goes on."""
    source = (
        HEAD
        + """
@orca.register
def work(group):
    raise ValueError("no good")

if __name__ == "__main__":
    with orca.join() as group:
        group.fork(work)
    print("end")
"""
    )
    ended = python(cli, source)
    assert (ended.returncode, ended.stdout) == (0, "end\n")
    found = re.fullmatch(
        r'Traceback \(most recent call last\):\n  File ".*prog\.py", line \d+, in work\n'
        r'    raise ValueError\("no good"\)\nValueError: no good\n'
        r"orcalike: rank 1 \(pid \d+, prog:work\) failed: it ended with exit code 1\n",
        ended.stderr,
    )
    assert found, ended.stderr


#: A worker that stays, and says its number; what its host does then comes as an argument.
STAYS = (
    HEAD
    + """
@orca.register
def work(group, event, begun):
    print(os.getpid(), flush=True)
    begun.set()
    event.wait()

if __name__ == "__main__":
    with orca.join() as group:
        event, begun = group.share(Event, "event"), group.share(Event, f"begun {group.rank}")
        group.fork(work, event, begun)
        begun.wait()
        if sys.argv[1] == "raise":
            raise SystemExit(3)
        if sys.argv[1] == "stay":
            event.wait()
    print("left", flush=True)
"""
)


def pid_of_worker(process: subprocess.Popen[str]) -> int:
    assert process.stdout
    return int(process.stdout.readline().split()[-1])


def test_an_exception_ends_the_workers(cli: Cli) -> None:
    with started(cli, STAYS, "raise") as process:
        pid = pid_of_worker(process)
        assert process.wait(cli.deadline) == 3
        until(lambda: not is_alive(pid))


@pytest.mark.parametrize("stays", ["stay", "leave"])
def test_ctrl_c_ends_the_workers(cli: Cli, stays: str) -> None:
    """In the midst of the program, and while leaving the block waits for them."""
    with started(cli, STAYS, stays) as process:
        pid = pid_of_worker(process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=cli.deadline)
        assert process.returncode == -signal.SIGINT
        assert errors.count("KeyboardInterrupt") == 1
        until(lambda: not is_alive(pid))


def test_workers_end_with_their_host(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a host that is killed leaves its socket there
    with started(cli, STAYS, "stay") as process:
        pid = pid_of_worker(process)
        assert is_alive(pid)
        process.kill()
        until(lambda: not is_alive(pid))
        process.communicate(timeout=cli.deadline)


def test_a_run_ends_its_workers(cli: Cli) -> None:
    with cli.started("-n", "2", cli.write(STAYS), "stay") as process:
        pids = [pid_of_worker(process), pid_of_worker(process)]
        assert all(map(is_alive, pids))
        process.send_signal(signal.SIGINT)
        process.communicate("", cli.deadline)
        assert process.wait(cli.deadline) == 130
    until(lambda: not any(map(is_alive, pids)))


#: Rank 0 asks rank 1, whose worker does not come as far as joining.
SLOW = (
    HEAD
    + """
logging.basicConfig(level=logging.CRITICAL)

@orca.register
def work(group): pass

if __name__ == "__mp_main__":
    print("importing", os.getppid(), os.getpid(), flush=True)
    time.sleep(1000)

if __name__ == "__main__":
    with orca.join() as group:
        if rank == 0:
            asked = group.fork.nowait(work, on=1)
            sys.stdin.readline()
            if sys.argv[1] == "cancel":
                print("cancelled", asked.cancel(), flush=True)
            try:
                asked.result()
            except Exception as error:
                print(type(error).__name__, error, flush=True)
            os._exit(0)  # rank 1 may be gone, and its majority with it
        sys.stdin.read() if rank == 2 else time.sleep(1000)
"""
)


def importing(process: subprocess.Popen[str]) -> tuple[int, int]:
    """The numbers of the host and of the worker."""
    assert process.stdout
    host, worker = map(int, process.stdout.readline().split()[-2:])
    return host, worker


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_host_that_dies_meanwhile(cli: Cli) -> None:
    with cli.started("-n", "3", "--no-prefix", "--keep-going", cli.write(SLOW), "wait") as process:
        host, worker = importing(process)
        os.kill(host, signal.SIGKILL)
        go_on(process)
        assert process.stdout
        line = process.stdout.readline()
        assert re.match(r"ForkFailed rank 1 \(.*\) has left the group before", line), line
        until(lambda: not is_alive(worker))


def test_a_request_that_is_withdrawn(cli: Cli) -> None:
    with cli.started(
        "-n", "3", "--no-prefix", "--keep-going", cli.write(SLOW), "cancel"
    ) as process:
        _, worker = importing(process)
        go_on(process)
        assert process.stdout
        assert process.stdout.readline() == "cancelled True\n"
        assert process.stdout.readline().startswith(
            "InvocationCancelled fork of prog:work was withdrawn"
        )
        until(lambda: not is_alive(worker))


@pytest.mark.usefixtures("own_runs")
def test_status_names_them(cli: Cli) -> None:
    with cli.started("-n", "1", cli.write(STAYS), "leave") as process:
        pid = pid_of_worker(process)
        row = rf"^1 +\S+ +{pid} +forked by 0: prog:work +-"

        def is_shown() -> object:
            shown = warm.python(*LOOKING, "status")
            assert shown.returncode == 0, shown.stderr
            return re.search(row, shown.stdout, re.MULTILINE)

        until(is_shown)
        process.send_signal(signal.SIGINT)
        process.communicate("", cli.deadline)


@pytest.mark.parametrize("check", ["shadow", "strict,order,hash"])
def test_a_process_checks_what_its_host_does(cli: Cli, check: str) -> None:
    """`join(check=...)` is no variable that it inherits."""
    source = (
        HEAD
        + f"""
@orca.register
def work(group, checks):
    checks.append(",".join(sorted(group._session.options.checks)))

def main():
    with orca.join(check={check!r}) as group:
        checks = group.share(List, "checks")
        group.fork(work, checks)
    print(*checks, flush=True)

if __name__ == "__main__":
    main()
"""
    )
    ended = python(cli, source)
    expected = ",".join(sorted(check.split(",")))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{expected}\n", "")


def test_a_process_is_reached_at_the_host_of_its_host(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host counts for it as well, the port does not: its parent has that."""
    pytest.importorskip("cryptography")
    source = (
        HEAD
        + """
import socket

@orca.register
def work(group, hosts, done):
    hosts.append(group.address.rpartition(":")[0])
    done.set()

def main():
    how = {"key": bytes(32), "listen": f"tcp:0.0.0.0:{sys.argv[1]}"}
    if sys.argv[2] != "variable":
        how["advertise"] = sys.argv[2]
    with orca.join(**how) as group:
        hosts, done = group.share(List, "hosts"), group.share(Event, "done")
        group.fork(work, hosts, done)
        done.wait()
        print(*hosts, flush=True)

if __name__ == "__main__":
    main()
"""
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ended = python(cli, source, "0", "127.0.0.9")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "tcp:127.0.0.9\n", "")
    monkeypatch.setenv("ORCALIKE_ADVERTISE", f"127.0.0.1:{port}")
    ended = python(cli, source, str(port), "variable")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "tcp:127.0.0.1\n", "")


#: A write that takes two members, while the second one is being started.
SLOW_START = (
    HEAD
    + """
import time

@orca.shared(resilience=1)
class Safe:
    def __init__(self):
        self.value = 0

    @orca.write
    def add(self):
        self.value += 1
        return self.value

@orca.register
def work(group):
    group.find(Safe, "safe").add()
    group.barrier()

if __name__ == "__main__":
    with orca.join() as group:
        group.fork.nowait(work, on=0)
        group.share(Safe, "safe").add()
        group.barrier()
        print("both have written")
else:
    time.sleep(4.5)  # longer than a group that is blocked for good is let be
"""
)


def test_a_run_waits_for_a_process_that_is_being_started(cli: Cli) -> None:
    result = cli.run("-n1", "-q", "--no-prefix", "--sequencer", "rank", cli.write(SLOW_START))
    assert (result.returncode, result.stdout) == (0, "both have written\n"), result.stderr
