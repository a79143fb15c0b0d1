"""Starting the ranks and the witness, and killing what they leave behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from orcalike.launch_protocol.control_lines import LINE_MAX, ToProcess, encode
from orcalike.launcher import bootstrap
from orcalike.launcher.job import Job

#: What is kept of a traceback.
REPORT_MAX = 1 << 20


@dataclass(slots=True)
class Child:
    """A process of this run, in a session of its own, with pipes and a line to the launcher.

    In its own session a terminal's Ctrl-C does not reach it, the launcher's signals reach it
    and what it started, and it may read the launcher's terminal without being stopped.
    """

    process: subprocess.Popen[bytes]
    #: Readable when the process has ended. Epoll keeps the order in which several ended.
    pidfd: int
    stdout: BinaryIO
    stderr: BinaryIO
    #: On which it and the launcher exchange lines (`orcalike.launch_protocol.control_channel`).
    control: socket.socket
    #: How often it was started again.
    restarts: int = 0
    #: A rank's: where its uncaught exception's traceback comes.
    report: BinaryIO | None = None
    #: What has come there.
    reported: bytearray = field(default_factory=bytearray)
    #: What has come on the line since the last line's end.
    _unfinished: bytes = b""

    @property
    def pid(self) -> int:
        """The process's number, which is its group's and session's too."""
        return self.process.pid

    def signal(self, number: int) -> None:
        """Send a signal to the process and all that it started.

        It may be called only while the process is not reaped: its number is its own so long.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def signal_alone(self, number: int) -> None:
        """Send a signal to the process and to nothing that it started."""
        self.process.send_signal(number)

    def read_report(self) -> bool:
        """Take what the rank has reported of its uncaught exception; whether more may come."""
        data = self.report.read(REPORT_MAX) if self.report else b""
        self.reported += (data or b"")[: REPORT_MAX - len(self.reported)]
        return data != b""

    def has_failed(self) -> bool:
        """Whether it ended otherwise than with 0; it must have ended, and not be reaped."""
        ended = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        return ended is not None and ended.si_status != 0

    def reap(self) -> int:
        """Take the exit status of a process that has ended; negative for a signal."""
        os.close(self.pidfd)
        return self.process.wait()

    def send(self, report: ToProcess) -> None:
        """Say it to the process; nothing happens if it has gone, or never reads."""
        with contextlib.suppress(OSError):
            self.control.send(encode(report).encode() + b"\n")

    def receive(self) -> list[str] | None:
        """The whole lines that the process has sent since; None when no more can come."""
        try:
            data = self.control.recv(2 * LINE_MAX)
        except BlockingIOError:
            return []
        except OSError:
            return None
        *lines, rest = (self._unfinished + data).split(b"\n")
        self._unfinished = rest if len(rest) < LINE_MAX else b""
        return [line.decode(errors="replace") for line in lines] if data else None


def start_rank(job: Job, rank: int, restarts: int = 0, formed: Sequence[str] = ()) -> Child:
    """Start one rank. Rank 0 has the launcher's standard input, the others none.

    Raises OSError if the system has no room for it.
    """
    reader, writer = os.pipe()
    theirs, ours = _control_line()
    environment = job.rank_environment(rank, restarts, formed)
    environment["ORCALIKE_REPORT_FD"] = str(writer)
    environment["ORCALIKE_CONTROL_FD"] = str(theirs.fileno())
    options = job.options
    command = [sys.executable, bootstrap.__file__, *(["-m"] if options.module else [])]
    passed = [writer, theirs.fileno()]
    for name in ("ORCALIKE_LISTEN_FD", "ORCALIKE_KEY_FD"):
        if name in environment:
            passed.append(int(environment[name]))
    with theirs, os.fdopen(writer, "wb", buffering=0):
        child = _start(
            [*command, options.program, *options.arguments],
            environment,
            passed,
            ours,
            stdin=None if rank == 0 and _may_read_stdin() else subprocess.DEVNULL,
            directory=options.directory,
        )
    os.set_blocking(reader, False)
    child.report = os.fdopen(reader, "rb", buffering=0)
    child.restarts = restarts
    return child


def start_witness(job: Job, restarts: int = 0, formed: Sequence[str] = ()) -> Child:
    """Start the member without replicas that orders, on the job's listening socket.

    Raises OSError if the system has no room for it.
    """
    assert job.listener is not None
    theirs, ours = _control_line()
    listen, control = job.listener.fileno(), theirs.fileno()
    # -P: no file of the current directory stands in for a module that the witness imports.
    command = [sys.executable, "-P", "-m", "orcalike.launcher.witness"]
    command += ["--listen-fd", str(listen), "--control-fd", str(control), "--address", job.address]
    if job.options.layers:
        command += ["--layers-from", str(job.options.program_folder)]
    environment = job.witness_environment(restarts, formed)
    passed = [listen, control, *([job.key_fd] if job.key_fd >= 0 else [])]
    with theirs:
        child = _start(command, environment, passed, ours, stdin=subprocess.DEVNULL)
    child.restarts = restarts
    return child


def _control_line() -> tuple[socket.socket, socket.socket]:
    """The process's end of its line and the launcher's; neither blocks."""
    theirs, ours = socket.socketpair()
    theirs.setblocking(False)
    ours.setblocking(False)
    return theirs, ours


def _start(
    command: list[str],
    environment: Mapping[str, str],
    passed: list[int],
    control: socket.socket,
    *,
    stdin: int | None,
    directory: Path | None = None,
) -> Child:
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=directory,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        pass_fds=passed,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    for pipe in (process.stdout, process.stderr):
        os.set_blocking(pipe.fileno(), False)
    pidfd = os.pidfd_open(process.pid)
    return Child(process, pidfd, process.stdout, process.stderr, control)  # type: ignore[arg-type]


def _may_read_stdin() -> bool:
    """A shell's background job may not take what is typed for the shell."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:  # not a terminal
        return True


def adopt_orphans() -> None:
    """Make what the ranks leave behind this process's children, so that it finds them."""
    bootstrap.prctl(bootstrap.SET_CHILD_SUBREAPER, 1)


def kill_orphans(spared: Collection[int]) -> None:
    """Kill and reap all children but the spared ones, and theirs, which come here then."""
    while orphans := _children() - set(spared):
        for pid in orphans:
            pidfd = os.pidfd_open(pid)
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            ended = select.poll()
            ended.register(pidfd, select.POLLIN)
            has_ended = ended.poll(1000)
            os.close(pidfd)
            if not has_ended:  # stuck in the kernel: its end cannot be waited for
                return
            os.waitpid(pid, 0)


def _children() -> set[int]:
    try:
        text = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text()
    except OSError:  # a kernel without the list: the guard kills the ranks' groups
        return set()
    return {int(pid) for pid in text.split()}
