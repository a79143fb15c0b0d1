"""`orcalike top` as a user meets it, on a terminal."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lib.own_runs import LOOKING
from tests.lib.processes import state_of, until
from tests.lib.terminal import Terminal

if TYPE_CHECKING:
    from tests.lib.command import Cli

#: Rank 1 writes all the time, rank 0 until a line comes.
PROGRAM = """
import orcalike as orca
from orcalike.objects import Counter, Event

with orca.join() as group:
    counter, done = group.share(Counter, "n"), group.share(Event, "done")
    group.barrier()
    print("ready", flush=True)
    if rank == 0:
        sys.stdin.readline()
        done.set()
    while not done.is_set():
        counter.add(1)
        time.sleep(0.001)
"""
COMMAND = (*LOOKING, "top")
HEAD = "RANK HOST PID STATE VIEW CPU RSS WRITES/s LAG GUARDED WAITS FOR"
ROW = r"1 \S+ \d+ member \d+ \d+% \d+M [1-9]\d* \d+ \d+"
ENTERED, LEFT = "\x1b[?1049h", "\x1b[?1049l"
"""What a terminal gets that shows another screen, and that shows the one from before again."""
GAP = r"(?:\x1b\[[0-9;]*m| )+"
"""Between two cells of a table: spaces, and what makes text bold."""


pytestmark = pytest.mark.usefixtures("own_runs")


@pytest.fixture(autouse=True)
def terminal_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that can do what it takes."""
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def program(cli: Cli) -> Iterator[subprocess.Popen[str]]:
    """Two ranks that are in their group."""
    with cli.started("-n", "2", cli.write(PROGRAM)) as process:
        assert process.stdout
        assert sorted(process.stdout.readline() for _ in "01") == ["[0] ready\n", "[1] ready\n"]
        yield process


@pytest.fixture
def terminal(program: object) -> Iterator[Terminal]:
    """The command, on a terminal of its own."""
    spawned = Terminal(sys.executable, *COMMAND, "--each", "0.1", dimensions=(40, 160))
    yield spawned
    spawned.close(force=True)


def ended(terminal: Terminal) -> int:
    status = terminal.ended()
    assert LEFT in terminal.before  # the screen from before is there again
    return status


def test_it_shows_the_ranks_and_takes_keys(terminal: Terminal) -> None:
    terminal.expect("group default · view")
    terminal.expect(HEAD.replace(" ", GAP))
    terminal.expect(ROW.replace(" ", GAP))
    for column in ("CPU", "RSS", "WRITES/s", "LAG", "GUARDED", "RANK"):
        terminal.send("s")
        terminal.expect(re.escape(f"s sort ({column})"))
    terminal.send("p")
    terminal.expect("p pause · paused")
    terminal.send("p")
    terminal.expect("p pause *\r?\n?")
    terminal.send("q")
    assert ended(terminal) == 0


def test_on_a_narrow_terminal_columns_are_left_out_and_none_is_cut(program: object) -> None:
    # pytest's readline puts COLUMNS into the environment, perhaps into C's alone, and that goes first.
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    options = {"dimensions": (40, 40), "env": environment}
    terminal = Terminal(sys.executable, *COMMAND, "--each", "0.1", **options)
    terminal.expect("RANK STATE WRITES/s LAG WAITS FOR".replace(" ", GAP))
    terminal.expect(r"1 member [1-9]\d* \d+".replace(" ", GAP))
    terminal.send("q")
    assert ended(terminal) == 0
    terminal.close(force=True)


def test_names_cannot_write_to_the_terminal(cli: Cli) -> None:
    odd = PROGRAM.replace("orca.join()", r'orca.join("\x1b[1mx")')
    with cli.started("-n", "2", cli.write(odd)) as process:
        assert process.stdout
        assert sorted(process.stdout.readline() for _ in "01") == ["[0] ready\n", "[1] ready\n"]
        terminal = Terminal(sys.executable, *COMMAND, dimensions=(40, 160))
        terminal.expect(re.escape(r"group \x1b[1mx · view"))
        terminal.send("q")
        assert ended(terminal) == 0
        terminal.close(force=True)


def test_ctrl_c_leaves_it(terminal: Terminal) -> None:
    terminal.expect("group default")
    terminal.sendintr()
    assert ended(terminal) == 0


def attributes(terminal: Terminal) -> list[object]:
    """How the terminal is set."""
    return termios.tcgetattr(terminal.child_fd)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_leaves_the_terminal_as_it_was(
    program: object, number: signal.Signals, code: int
) -> None:
    with shell() as terminal:
        before = attributes(terminal)
        terminal.sendline()
        terminal.expect("group default")
        assert attributes(terminal) != before
        os.kill(child_of(terminal.pid), number)
        terminal.expect(re.escape(LEFT))
        terminal.expect(rf"ended: {code}\r\n")
        assert attributes(terminal) == before


def test_ctrl_z_leaves_the_terminal_as_it_was_until_it_goes_on(program: object) -> None:
    with shell() as terminal:
        before = attributes(terminal)
        terminal.sendline()
        terminal.expect("group default")
        pid = child_of(terminal.pid)
        os.kill(pid, signal.SIGTSTP)
        terminal.expect(re.escape(LEFT))
        until(lambda: state_of(pid) == "T", "it is stopped")
        assert attributes(terminal) == before
        os.kill(pid, signal.SIGCONT)
        terminal.expect(re.escape(ENTERED))
        terminal.expect("group default")
        terminal.send("q")
        terminal.expect(r"ended: 0\r\n")


@contextlib.contextmanager
def shell() -> Iterator[Terminal]:
    """A shell that waits for a line, runs the command, says its exit code, and has the terminal still."""
    script = 'read line; "$@"; echo "ended: $?"; read line'
    command = (sys.executable, *COMMAND, "--each", "0.1")
    terminal = Terminal("sh", "-c", script, "sh", *command, dimensions=(40, 160))
    try:
        yield terminal
    finally:
        terminal.close(force=True)


def child_of(pid: int) -> int:
    """The one process that it has started."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def test_it_ends_with_the_program(
    cli: Cli, program: subprocess.Popen[str], terminal: Terminal
) -> None:
    terminal.expect("group default")
    program.communicate("\n", timeout=cli.deadline)
    terminal.expect("orcalike: the program has ended")
    assert terminal.ended() == 0


def test_without_a_terminal_it_names_what_to_use() -> None:
    ended = subprocess.run(
        [sys.executable, *COMMAND],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        stdin=subprocess.DEVNULL,
    )
    expected = "orcalike: top needs a terminal; elsewhere: orcalike status --watch\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", expected)


def test_on_a_terminal_that_cannot_move_its_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal(sys.executable, *COMMAND)
    terminal.expect("orcalike: top needs a terminal that moves its cursor, and TERM is dumb; else")
    assert terminal.ended() == 2


def test_looks_that_are_further_apart_than_the_kernel_waits(program: object) -> None:
    """It takes 2**31 ms at the most, which are 24.8 days."""
    terminal = Terminal(sys.executable, *COMMAND, "--each", "600h", dimensions=(40, 160))
    terminal.expect("q quit")
    terminal.send("q")
    assert ended(terminal) == 0


def test_no_run_is_an_error() -> None:
    terminal = Terminal(sys.executable, *COMMAND)
    terminal.expect("orcalike: no program of yours is running")
    assert terminal.ended() == 69


def test_rich_is_imported_by_this_verb_alone() -> None:
    check = "import sys, orcalike.cli.top, orcalike.cli.status; print('rich' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=280
    )
    assert found.stdout == "False\n"
