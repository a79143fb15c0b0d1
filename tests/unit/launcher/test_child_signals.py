"""Signals to a process of this host, before its end and just at it."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
from typing import cast

import pytest

from orcalike.launcher.child import Exit, Stream
from orcalike.launcher.local_child import ControlLine, LocalChild
from orcalike.launcher.template import Output
from tests.lib.processes import until


class Noted:
    """An `Observer` that keeps how the process has ended."""

    def __init__(self) -> None:
        self.ends: list[Exit] = []

    def line(self, line: str) -> None:
        """Nothing: none is sent here."""

    def output(self, stream: Stream, data: bytes) -> None:
        """The same."""

    def output_ended(self, stream: Stream) -> None:
        """Nothing."""

    def ended(self, end: Exit) -> None:
        """Keep it."""
        self.ends.append(end)

    def member_ended(self, incarnation: int) -> None:
        """It starts none."""

    def failed_to_start(self, error: OSError) -> None:
        """It has started."""


def start(program: str, selector: selectors.BaseSelector) -> tuple[LocalChild, Noted]:
    """A process that `subprocess.Popen` has started, as one that is started again."""
    theirs, ours = socket.socketpair()
    theirs.close()
    ours.setblocking(False)
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    child = LocalChild(
        process,
        cast(Output, (process.stdout, process.stderr)),
        ControlLine(ours),
        None,
        host="here",
        restarts=1,
        kills_rest=True,
        on_reaped=lambda child: None,
    )
    child.attach(selector)
    noted = Noted()
    child.observe(noted)
    return child, noted


def take_end(selector: selectors.BaseSelector, child: LocalChild, noted: Noted) -> None:
    while not noted.ends:
        registered = selector.get_map()
        for key, _ in selector.select():
            if registered.get(key.fd) is key:
                key.data()
    child.close_output()


def has_ended(child: LocalChild) -> bool:
    """Whether it has, without waiting for it as its parent."""
    look = os.WEXITED | os.WNOWAIT | os.WNOHANG
    return os.waitid(os.P_PID, child.pid, look) is not None


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGKILL, signal.SIGSTOP])
def test_a_signal_to_a_process_that_has_just_ended_leaves_its_end_to_be_seen(
    number: signal.Signals,
) -> None:
    with selectors.DefaultSelector() as selector:
        child, noted = start("raise SystemExit(3)", selector)
        until(lambda: has_ended(child), "it has ended")
        child.signal_alone(number)
        take_end(selector, child, noted)
        assert [end.returncode for end in noted.ends] == [3]
        child.signal_alone(number)  # its number may be another's by now


def test_a_signal_reaches_the_process_alone() -> None:
    with selectors.DefaultSelector() as selector:
        child, noted = start("import time; time.sleep(1000)", selector)
        child.signal_alone(signal.SIGKILL)
        take_end(selector, child, noted)
        assert [end.returncode for end in noted.ends] == [-signal.SIGKILL]


INTERRUPTED = """
import os, signal
from orcalike.launcher import bootstrap
setattr(bootstrap, {step!r}, lambda *given: signal.raise_signal(signal.SIGINT))
bootstrap.main()
"""


@pytest.mark.parametrize("step", ["_name_group", "_take_signals", "own_key"])
def test_ctrl_c_before_the_program_begins_shows_no_traceback(step: str) -> None:
    """The launcher sends it to ranks that it has only just started."""
    with open(os.devnull, "wb") as null:
        descriptor = str(null.fileno())
        found = subprocess.run(
            [sys.executable, "-c", INTERRUPTED.format(step=step)],
            env=os.environ
            | {
                "ORCALIKE_LAUNCHER": str(os.getpid()),
                "ORCALIKE_REAPER_FD": descriptor,
                "ORCALIKE_REPORT_FD": "2",
                "ORCALIKE_CONTROL_FD": "2",
            },
            pass_fds=[null.fileno()],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert (found.returncode, found.stdout, found.stderr) == (-signal.SIGINT, "", "")
