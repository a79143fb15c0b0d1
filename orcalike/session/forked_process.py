"""A process that this member hosts, and how it is started: with a registered function, and as this process was.

It is in the process group of its parent, and has its output. What it is to do goes by a descriptor, as
does the key, so that neither stands on a command line or in an environment.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from orcalike.launch_protocol import control_channel
from orcalike.runtime import registered
from orcalike.runtime.forks import Request
from orcalike.session.host_address import beside
from orcalike.session.keys import passed_on
from orcalike.session.options import JoinOptions
from orcalike.transport.view import View

if TYPE_CHECKING:
    import subprocess  # few programs fork, and it takes long

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "forked_child.py")
"""What runs in the process first."""
JOIN_WITHIN = 60.0
"""Seconds in which a process must have joined, once it has imported its program."""
START_WITHIN = 180.0
"""Seconds in which a process must have joined, from its start on."""


if TYPE_CHECKING:

    class Hosting(Protocol):
        """A session, as far as processes join through its member."""

        @property
        def options(self) -> JoinOptions:
            """How it has joined itself."""

        @property
        def address(self) -> str:
            """Where they join."""

        @property
        def view(self) -> View | None:
            """The one that is installed."""

        def hosts(self, number: int) -> None:
            """This member runs so many processes."""


@dataclass(slots=True, eq=False)
class Hosted:
    """A process, from its start to its end."""

    request: Request
    process: subprocess.Popen[bytes]
    pidfd: int
    report: int
    """-1 once it has said what has become of it."""
    deadline: float
    said: bytes = b""
    rank: int | None = None
    is_in: bool = False
    answered: bool = False

    def describe(self) -> str:
        """`rank 4 (pid 4711, prog:work)`."""
        name = "a process" if self.rank is None else f"rank {self.rank}"
        return f"{name} (pid {self.process.pid}, {self.request.function})"


def start_process(request: Request, session: Hosting, taken: Collection[int | None]) -> Hosted:
    """Start a process that does what is requested; `taken` are ranks that it need not ask for.

    Raises OSError if the system has no room for it.
    """
    import json  # not at the top: few programs fork
    import subprocess

    with contextlib.ExitStack() as opened:
        reader, writer = os.pipe()
        reader_end = opened.enter_context(contextlib.ExitStack())
        reader_end.callback(os.close, reader)
        opened.callback(os.close, writer)
        os.set_blocking(reader, False)
        task = os.memfd_create("orcalike-fork", os.MFD_CLOEXEC)
        opened.callback(os.close, task)
        with open(task, "wb", closefd=False) as file:
            file.write(json.dumps(_task(request, session, taken)).encode() + b"\n")
            file.write(request.arguments)
        passed = [task, writer]
        environment = {key: os.environ[key] for key in os.environ if key != "ORCALIKE_KEY_FD"}
        if session.options.keys is not None:
            passed.append(passed_on(session.options.keys))
            opened.callback(os.close, passed[-1])
            environment["ORCALIKE_KEY_FD"] = str(passed[-1])
        # So that it can say which member it is: its death is certain then.
        if (line := control_channel.passed_descriptor()) is not None:
            passed.append(line)
        process = subprocess.Popen(
            [
                *(sys.executable, "-P", PROGRAM),
                *map(str, (os.getpid(), task, writer)),
            ],
            stdin=subprocess.DEVNULL,
            pass_fds=passed,
            env=environment,
        )
        pidfd = os.pidfd_open(process.pid)
        reader_end.pop_all()
    return Hosted(request, process, pidfd, reader, time.monotonic() + START_WITHIN)


def _task(request: Request, session: Hosting, taken: Collection[int | None]) -> dict[str, Any]:
    """What the process is to do, as `forked_child` reads it."""
    from multiprocessing import spawn  # not at the top: few programs fork

    program = spawn.get_preparation_data("orcalike fork")
    del program["authkey"]
    module = registered.functions[request.function].__module__
    options = session.options
    return {
        "program": program,
        "function": request.function,
        "module": "" if module in ("__main__", "__mp_main__") else module,
        "rank_from": _first_rank(options.rank_from, taken),
        "join": {
            "name": options.name,
            "seeds": session.address,
            "stack": options.stack,
            "blocked": options.blocked,
            "insecure": options.insecure,
            "check": ",".join(sorted(options.checks)),
            **beside(session.address, options.interface),
            "timeout": JOIN_WITHIN,
        },
    }


def _first_rank(first: int | None, taken: Collection[int | None]) -> int | None:
    """The rank to ask for first: none that a launcher starts, again if need be; None for any that is free."""
    if first is None:
        return None
    return next(rank for rank in range(first, first + len(taken) + 1) if rank not in taken)
