"""A process that several ranks are forked from, with all loaded that they have in common (ADR-22).

To import orcalike takes most of the time in which a member starts. The template does that once: it is started as
a rank is (`bootstrap`), but waits for requests before it runs the program. Each rank that it forks gets its
variables and descriptors with the request, and is a child of this process, as one that was started by itself.
What the interpreter has read of its environment is the same for all: only the variables of one rank differ.

It is of no use to one rank alone, and gone when all have begun: one that is started again finds the program's files as they
are then.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

from orcalike.launcher.bootstrap import REQUEST_MAX

LOAD_SECONDS = 10.0
"""A template that is not there by then is done without."""
FORK_SECONDS = 60.0
"""How long a rank may take to begin."""


Output: TypeAlias = tuple[BinaryIO, BinaryIO]
"""What a process prints, and prints of errors."""


class Process(Protocol):
    """A child of this process, as `subprocess.Popen` has it."""

    @property
    def pid(self) -> int:
        """Its number."""

    def wait(self) -> int:
        """Wait for its end; returns the exit code, negative for a signal."""


class Forked:
    """One that a template has forked."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._returncode: int | None = None

    def wait(self) -> int:
        """Wait for its end; returns the exit code, negative for a signal."""
        if self._returncode is None:
            _, status = os.waitpid(self.pid, 0)
            self._returncode = os.waitstatus_to_exitcode(status)
        return self._returncode


class Template:
    """One template, until `close`."""

    def __init__(
        self, command: list[str], environment: dict[str, str], directory: Path | None
    ) -> None:
        """Start it, with the command and the variables that all ranks have.

        Raises OSError if the system has no room for it.
        """
        self.environment = environment
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(FORK_SECONDS)
        self._is_ready: bool | None = None
        self._ready_by = time.monotonic() + LOAD_SECONDS
        with theirs:
            self._process = subprocess.Popen(
                command,
                env=environment | {"ORCALIKE_TEMPLATE_FD": str(theirs.fileno())},
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=2,  # what Python itself prints as it starts
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process, a child of this one."""
        return self._process.pid

    def fileno(self) -> int:
        """Readable when it has loaded, or has ended."""
        return self._socket.fileno()

    @property
    def is_ready(self) -> bool:
        """Whether ranks can be forked from it; waits until it has loaded, or cannot be one."""
        if self._is_ready is None:
            within = max(0.0, self._ready_by - time.monotonic())
            poller = select.poll()  # select(2) does not take each of many ranks' descriptors
            poller.register(self._socket, select.POLLIN)
            self._is_ready = bool(poller.poll(within * 1000)) and self._receive() == b"ready"
        return self._is_ready

    def fork(
        self,
        environment: Mapping[str, str],
        descriptors: Mapping[str, int],
        stdin: int,
    ) -> tuple[Forked, Output] | None:
        """A rank with these variables, and what it prints; `descriptors` are its own, by the variables that name them.

        None if the template has ended. Raises OSError if the system has no room for the rank.
        """
        changed = {
            name: value
            for name, value in environment.items()
            if name not in descriptors and self.environment.get(name) != value
        }
        removed = [name for name in self.environment if name not in environment]
        request = {"changed": changed, "removed": removed, "names": list(descriptors)}
        data = json.dumps(request).encode()
        if len(data) > REQUEST_MAX:
            raise OSError(errno.E2BIG, f"variables of {len(data)} bytes for one rank")
        with ExitStack() as ends:
            (out, its_out), (err, its_err) = _pipe(ends), _pipe(ends)
            standard = stdin, its_out, its_err
            with suppress(ConnectionError):
                socket.send_fds(self._socket, [data], [*standard, *descriptors.values()])
            try:
                answer = json.loads(self._receive() or b"{}")
            except TimeoutError:
                answer = {"errno": errno.ETIMEDOUT}
        if "pid" in answer:
            return Forked(answer["pid"]), (out, err)
        out.close()
        err.close()
        if "errno" in answer:
            raise OSError(answer["errno"], os.strerror(answer["errno"]))
        return None

    def close(self) -> None:
        """End it; its ranks go on."""
        self._socket.close()
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(256)
        except ConnectionError:
            return b""


def _pipe(ends: ExitStack) -> tuple[BinaryIO, int]:
    """A pipe: an end to be read, and the other one, which `ends` closes."""
    reader, writer = os.pipe()
    ends.callback(os.close, writer)
    return os.fdopen(reader, "rb", buffering=0), writer
