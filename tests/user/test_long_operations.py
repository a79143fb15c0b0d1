"""An operation that does not end: the log names it, timed calls end, and Ctrl-C ends the program."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lib.orders import IN_MEMORY, OVER_WITNESS
from tests.lib.warm import WarmCli

if TYPE_CHECKING:
    from tests.lib.command import Cli

ORDERS = pytest.mark.parametrize("order", [OVER_WITNESS, IN_MEMORY], ids=["witness", "memory"])

ENDLESS = """
import logging, threading
import orcalike as orca
logging.basicConfig(level=logging.INFO, format="log: %(message)s", stream=sys.stdout)

@orca.shared
class Endless:
    @orca.write
    def spin(self) -> None:
        while True:
            pass

@orca.shared
class Counter:
    def __init__(self) -> None:
        self.value = 0

    @orca.write
    def add(self) -> int:
        self.value += 1
        return self.value
"""

TIMED = """
with orca.join() as group:
    endless, counter = group.share(Endless, "endless"), group.share(Counter, "counter")
    group.barrier(timeout=200.0)  # a thread that waits without a limit may run what comes next
    if rank == 0:
        endless.spin.nowait()
    else:
        try:
            endless.spin.options(timeout=1.0)()
        except orca.InvocationTimeout as error:
            print("timed out:", error.outcome, flush=True)
        for _ in range(100):
            counter.add.options(timeout=200.0)()
        print("others go on", flush=True)
    time.sleep(1000)
"""

ASIDE = """
@orca.shared
class Stuck:
    def __init__(self, made_by: int) -> None:
        while made_by:
            pass

    def member_left(self, member: orca.Member) -> None:
        while True:
            pass

with orca.join() as group:
    if sys.argv[1] == "hook":
        stuck = group.share(Stuck, "stuck", 0)
    group.barrier(timeout=200.0)  # rank 0 has the state: rank 1 could not give it any more
    if rank == 0:
        time.sleep(1000)
    elif sys.argv[1] == "init":
        group.share.nowait(Stuck, "stuck", 1)
        group.fence(timeout=1000.0)
"""

LET_RUN = """
@orca.shared
class Held:
    def __init__(self) -> None:
        self.free = False

    @orca.write
    def spin(self) -> None:
        while True:
            pass

    @orca.write(popup=True)
    def slow(self) -> None:
        for _ in range(20_000_000):
            pass

    @orca.write
    def wait(self) -> None:
        pass

    @wait.when
    def _(self) -> bool:
        return False

    @orca.write
    def spin_if_free(self) -> None:
        while True:
            pass

    @spin_if_free.when
    def _(self) -> bool:
        return self.free

    @orca.write
    def spin_in_guard(self) -> None:
        pass

    @spin_in_guard.when
    def _(self) -> bool:
        while True:
            pass

    @orca.read
    def look(self) -> None:
        for _ in range(20_000_000):
            pass

    @orca.read
    def look_forever(self) -> None:
        while True:
            pass

    def member_left(self, member: orca.Member) -> None:
        self.free = True

with orca.join() as group:
    held = group.share(Held, "held")
    group.barrier(timeout=200.0)
    what = sys.argv[1]
    if rank == 0 and what == "departure":
        held.spin_if_free.nowait()
        group.fence(timeout=200.0)
    elif rank == 0 and what == "guard":
        held.spin_in_guard.nowait()
    elif rank == 0 and what == "pop-up":
        held.slow.nowait()
        held.spin.nowait()
    elif rank == 0 and what == "withdrawal":
        invocation = held.wait.nowait()
        held.slow.nowait()
        invocation.cancel()
        held.spin.nowait()
    elif rank == 0 and what == "released":
        thread = threading.Thread(target=held.look, daemon=True)
        thread.start()
        held.spin.nowait()
    elif rank == 0:
        thread = threading.Thread(target=held.look_forever, daemon=True)
        thread.start()
        while sys._current_frames()[thread.ident].f_code.co_name != "look_forever":
            time.sleep(0.01)
        held.wait.nowait()
    if rank == 0 or what != "departure":
        time.sleep(1000)
"""

HANDED_OVER = """
@orca.shared
class Moved:
    snapshot_is_endless = restore_is_endless = False

    def snapshot(self) -> int:
        while self.snapshot_is_endless:
            pass
        return 1

    @classmethod
    def restore(cls, state: int) -> "Moved":
        while cls.restore_is_endless:
            pass
        return Moved()

if sys.argv[1] == "first":
    with orca.join(listen="unix:" + sys.argv[2]) as group:
        group.share(Moved, "moved")
        Moved.WHAT = True
        print("shared", flush=True)
        time.sleep(1000)
else:
    Moved.WHAT = True
    orca.join(seeds="unix:" + sys.argv[2]).__enter__()
"""

INTERRUPTED = """
with orca.join(listen="unix:" + sys.argv[1]) as group:
    endless = group.share(Endless, "endless")
    print("spins", flush=True)
    if sys.argv[2] == "main":
        endless.spin()
    else:
        threading.Thread(target=endless.spin, daemon=True).start()
        while True:
            time.sleep(0.1)
"""


@pytest.fixture
def cli(tmp_path: Path) -> WarmCli:
    """The command, for this test."""
    return WarmCli(tmp_path)


@ORDERS
def test_the_log_names_it_and_timed_calls_end(cli: Cli, order: tuple[str, ...]) -> None:
    """At each member, with the object and the line that it is in."""
    flags = ("-q", "-n2", f"--timeout={cli.deadline:g}s", *order)
    with cli.started(*flags, cli.write(ENDLESS + TIMED)) as process:
        assert process.stdout is not None
        missing = {
            *(
                f"\\[{rank}\\] log: Endless.spin of 'endless' has run for \\d+\\.\\d s"
                for rank in "01"
            ),
            *(f"\\[{rank}\\] +while True:" for rank in "01"),
            r"\[1\] timed out: (unknown|withdrawn)",
            r"\[1\] others go on",
        }
        said = []
        for line in process.stdout:
            said.append(line)
            missing = {pattern for pattern in missing if not re.search(pattern, line)}
            if not missing:
                return
        raise AssertionError(f"never {missing}: {said}")


@ORDERS
@pytest.mark.parametrize(("where", "name"), [("init", "__init__"), ("hook", "member_left")])
def test_the_log_names_what_the_runtime_calls(
    cli: Cli, where: str, name: str, order: tuple[str, ...]
) -> None:
    """An `__init__` and a hook hold up their member, so it is all the more worth knowing."""
    flags = ("-q", "-n2", f"--timeout={cli.deadline:g}s", *order)
    says = (
        rf"\[0\] log: Stuck.{name} of 'stuck' has run for \d+\.\d s .* receives nothing meanwhile"
    )
    with cli.started(*flags, cli.write(ENDLESS + ASIDE), where) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if re.search(says, line):
                return
        raise AssertionError(f"never {says}: {said}")


@ORDERS
@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("departure", "spin_if_free"),
        ("guard", "spin_in_guard"),
        ("pop-up", "spin"),
        ("withdrawal", "spin"),
        ("released", "spin"),
        ("read", "look_forever"),
    ],
)
def test_the_log_names_what_others_have_let_run(
    cli: Cli, what: str, name: str, order: tuple[str, ...]
) -> None:
    """Wherever it runs: where messages are received, in a pop-up thread, in one of the program's."""
    flags = ("-q", "-n2", f"--timeout={cli.deadline:g}s", *order)
    missing = {
        rf"\[0\] log: Held.{name} of 'held' has run for \d+\.\d s",
        r"\[0\] +while True:",
    }
    with cli.started(*flags, cli.write(ENDLESS + LET_RUN), what) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            missing = {pattern for pattern in missing if not re.search(pattern, line)}
            if not missing:
                return
        raise AssertionError(f"never {missing}: {said}")


@pytest.mark.parametrize("hook", ["snapshot", "restore"])
def test_the_log_names_what_a_state_transfer_calls(cli: Cli, tmp_path: Path, hook: str) -> None:
    """The member that gives its state has been asked for it; the one that joins takes it."""
    program = cli.write(ENDLESS + HANDED_OVER.replace("WHAT", f"{hook}_is_endless"))
    address = str(tmp_path / "group")
    processes = []
    try:
        for which in ("first", "second"):
            command = [sys.executable, program, which, address]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            processes.append(process)
            if which == "first":
                assert process.stdout is not None
                while process.stdout.readline() != "shared\n":
                    assert process.poll() is None
        said = processes[hook == "restore"].stdout
        assert said is not None
        limit = threading.Timer(cli.deadline, processes[hook == "restore"].kill)
        limit.daemon = True
        limit.start()
        assert any(f"log: Moved.{hook} of 'moved' has run for" in line for line in said)
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("where", ["main", "thread"])
def test_ctrl_c_ends_the_program(cli: Cli, tmp_path: Path, where: str) -> None:
    """Under plain python, wherever the operation runs."""
    program = cli.write(ENDLESS + INTERRUPTED)
    command = [sys.executable, program, str(tmp_path / "group"), where]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            while "spins" not in process.stdout.readline():
                pass
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=cli.deadline)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0
