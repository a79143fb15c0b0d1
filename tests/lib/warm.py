"""Python programs in forks of one process that has loaded orcalike, as most programs would.

A test of what a program or a command does need not pay for a new interpreter each time. A fork has
its own arguments, environment, directory and standard files, and ends as an interpreter does. What
depends on how an interpreter starts is tested with one that is started: this is not for it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self

from tests.lib.command import Cli
from tests.lib.processes import DEADLINE, is_readable

MESSAGE = 1 << 17
"""Bytes of a request: arguments and environment."""
READ_AT_THE_START = ("PYTHONHASHSEED", "PYTHONUNBUFFERED")
"""Variables that an interpreter has from its start: the process that forks is started with the same."""


def python(
    *arguments: str | Path,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    input: str | None = None,
    timeout: float = DEADLINE,
) -> subprocess.CompletedProcess[str]:
    """`python` with these arguments, to its end: a program, `-m` and a module, or `-c` and a text."""
    with Fork(*arguments, cwd=cwd, env=env, has_input=input is not None) as process:
        output, errors = process.communicate(input or "", timeout)
        return subprocess.CompletedProcess(arguments, process.wait(timeout), output, errors)


class WarmCli(Cli):
    """The `orcalike run` command, whose launcher is such a fork; the ranks are started as ever."""

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run to the end, with both outputs."""
        return python(*self.command[1:], *arguments, **options)

    @contextlib.contextmanager
    def started(self, *arguments: str) -> Iterator[Fork]:  # type: ignore[override]
        """A run under way, with pipes; killed at the end if it still goes on."""
        with Fork(*self.command[1:], *arguments) as process:
            yield process


class Fork:
    """Such a process: it has what the tests use of `subprocess.Popen`."""

    def __init__(
        self,
        *arguments: str | Path,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        has_input: bool = True,
        errors: Path | None = None,
    ) -> None:
        """Start it; its standard files are pipes, but its stdin is empty if it has no input.

        With `errors` its stderr is that file, which is made.
        """
        environment = dict(os.environ if env is None else env)
        request = {
            "arguments": list(map(str, arguments)),
            "directory": str(cwd or Path.cwd()),
            "environment": environment,
        }
        self._outcome, outcome = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pipes = [os.pipe() for _ in range(3)]
        self.stdin = os.fdopen(pipes[0][1], "w")
        self.stdout, self.stderr = (os.fdopen(pipe[0]) for pipe in pipes[1:])
        theirs = [outcome.fileno(), pipes[0][0], pipes[1][1], pipes[2][1]]
        if not has_input:
            os.close(theirs[1])
            theirs[1] = os.open(os.devnull, os.O_RDONLY)
        if errors is not None:
            os.close(theirs[3])
            theirs[3] = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        server = _server(*(environment.get(name) for name in READ_AT_THE_START))
        socket.send_fds(server.connection, [json.dumps(request).encode()], theirs)
        outcome.close()
        for descriptor in theirs[1:]:
            os.close(descriptor)
        self.pid = int(self._outcome.recv(MESSAGE))
        self.returncode: int | None = None

    def communicate(self, given: str, timeout: float) -> tuple[str, str]:
        """Give it its input, and read all of its outputs; one that takes too long is killed."""
        errors: list[str] = []
        reading = threading.Thread(target=lambda: errors.append(self.stderr.read()))
        limit = threading.Timer(timeout, self.kill)
        for thread in (reading, limit):
            thread.start()
        with contextlib.suppress(BrokenPipeError):
            self.stdin.write(given)
            self.stdin.close()
        output = self.stdout.read()
        reading.join()
        limit.cancel()
        limit.join()
        return output, errors[0]

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        if self.returncode is None and is_readable(self._outcome.fileno(), 0):
            self.wait()
        return self.returncode

    def wait(self, timeout: float = DEADLINE) -> int:
        """Its exit code, when it has ended; raises TimeoutError if it does not."""
        if self.returncode is None:
            self._outcome.settimeout(timeout)
            self.returncode = int(self._outcome.recv(MESSAGE))
            self._outcome.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it, if it runs."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()
        self.wait()
        for file in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(BrokenPipeError):
                file.close()


class Server:
    """The process that forks, as the tests have it; it ends when its connection is closed.

    It is there for all tests, and so it is not one of the processes that no test may leave behind.
    """

    def __init__(self, variables: dict[str, str]) -> None:
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.set_inheritable(True)
        with theirs, open(os.devnull, "r+b") as null:
            command = [sys.executable, "-c", "import tests.lib.warm as it; it.main()"]
            environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])} | variables
            self.pid = os.posix_spawn(
                sys.executable,
                [*command, str(theirs.fileno())],
                environment,
                file_actions=[(os.POSIX_SPAWN_DUP2, null.fileno(), each) for each in (0, 1)],
            )
        atexit.register(self.close)

    def close(self) -> None:
        """End it."""
        self.connection.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


@cache
def _server(*values: str | None) -> Server:
    variables = zip(READ_AT_THE_START, values, strict=True)
    return Server({name: value for name, value in variables if value is not None})


# In the process that forks


def main() -> None:
    """Load what the forks need, and fork; each fork runs its program here."""
    import orcalike.cli.chaos
    import orcalike.cli.check_history
    import orcalike.cli.run
    import orcalike.declare.registration
    import orcalike.environments.finding
    import orcalike.group
    import orcalike.objects.counters
    import orcalike.session.joining
    import orcalike.transport.drivers.mapped_order  # noqa: F401

    gc.freeze()
    begin(serve(socket.socket(fileno=int(sys.argv[1]))))


def serve(connection: socket.socket) -> dict[str, Any]:
    """Fork for each request, and say how each fork has ended; returns in the forks alone."""
    outcomes: dict[int, tuple[int, socket.socket]] = {}  # by what shows that the process has ended
    while True:
        poller = select.poll()
        for each in (connection.fileno(), *outcomes):
            poller.register(each, select.POLLIN)
        ready = [each for each, _ in poller.poll()]
        for ended in outcomes.keys() & set(ready):
            pid, outcome = outcomes.pop(ended)
            how = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            assert how is not None
            code = how.si_status if how.si_code == os.CLD_EXITED else -how.si_status
            with contextlib.suppress(BrokenPipeError):
                outcome.send(str(code).encode())
            outcome.close()
            os.close(ended)
            os.waitpid(pid, 0)  # not before: a signal that is sent meanwhile must find it
        if connection.fileno() not in ready:
            continue
        message, files, _, _ = socket.recv_fds(connection, MESSAGE, 4)
        if not message:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            break
        outcome = socket.socket(fileno=files[0])
        for file in files[1:]:
            os.close(file)
        outcome.send(str(pid).encode())
        outcomes[os.pidfd_open(pid)] = pid, outcome
    connection.close()
    for ended, (_, outcome) in outcomes.items():
        outcome.close()
        os.close(ended)
    for stream, file in enumerate(files[1:]):
        os.dup2(file, stream)
    for file in files:
        os.close(file)
    request: dict[str, Any] = json.loads(message)
    return request


def begin(request: dict[str, Any]) -> None:
    """Run the program of a request, as Python's command line would."""
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    first, *others = request["arguments"]
    if first == "-m":
        sys.argv, sys.path[0] = others, os.getcwd()
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv, sys.path[0] = ["-c", *others[1:]], ""
        exec(compile(others[0], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
    else:
        sys.argv, sys.path[0] = [first, *others], str(Path(first).resolve().parent)
        runpy.run_path(first, run_name="__main__")
