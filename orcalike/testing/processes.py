"""Processes that are members of one group, and that a test calls functions in, kills and pauses.

Each runs `orcalike.testing.member`. Test and process talk through a socket pair that the process
inherits, and no other process has.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any, Concatenate, ParamSpec, TypeVar

from orcalike.group import Group
from orcalike.testing.by_rank import ByRank

P = ParamSpec("P")
T = TypeVar("T")

REPORT_WITHIN = 3.0
"""Seconds in which a process says what it does."""


class ProcessEnded(Exception):
    """The process has ended before it had answered."""


class Process:
    """A member in a process of its own."""

    def __init__(self, address: str, rank: int, environment: dict[str, str]) -> None:
        self.rank = rank
        self._numbers = itertools.count()
        self._futures: dict[int, Future[Any]] = {}
        self._paused = False
        self._lock = threading.Lock()
        here, there = socket.socketpair()
        with there:
            command = [sys.executable, "-m", "orcalike.testing.member", str(there.fileno())]
            self._process = subprocess.Popen(
                command, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, env=environment
            )
        self._socket = here
        self._connection = Connection(os.dup(here.fileno()))
        self._connection.send((sys.path, address, rank))
        name = f"orcalike answers of rank {rank}"
        self._thread = threading.Thread(target=self._read, name=name, daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def join_group(self) -> Future[Any]:
        """Have the process join the group; done when it is in."""
        return self._ask("join", ("", ""), None)

    def call(
        self, function: Callable[Concatenate[Group, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `function(group, *args)` returns there; waits for it, and raises what it raises.

        The function is one of a module, and its arguments and result can be pickled. Raises
        ProcessEnded if the process ends meanwhile.
        """
        return self.start(function, *args, **kwargs).result()

    def start(
        self, function: Callable[Concatenate[Group, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """The same without waiting: `.result(timeout)` has the outcome. Calls run one by one."""
        module = sys.modules[function.__module__]
        file = getattr(module, "__file__", None) or ""  # a module that is built in has none
        return self._ask("call", (module.__name__, file), (function, args, kwargs))

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # it is closed
            self._socket.shutdown(socket.SHUT_RDWR)  # a child of the process may have its end

    def pause(self) -> None:
        """Stop the process with SIGSTOP: it does nothing until `resume`, and is expelled by then."""
        self._paused = True
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the process go on."""
        self._paused = False
        self._process.send_signal(signal.SIGCONT)

    def report(self) -> str:
        """The stacks of the process, and what its calls wait for."""
        title = f"rank {self.rank} (pid {self.pid})"
        code = self._process.poll()
        if code is not None:
            return f"{title}: ended with {code}"
        if self._paused:
            return f"{title}: paused"
        try:
            asked = self._ask("report", ("", ""), title, REPORT_WITHIN)
            return str(asked.result(REPORT_WITHIN))
        except (TimeoutError, ProcessEnded):
            return f"{title}: no answer within {REPORT_WITHIN:g} s"

    def close(self) -> None:
        """End the process, if it still runs."""
        self.kill()
        self._thread.join()
        self._connection.close()
        self._socket.close()

    def _ask(
        self, kind: str, module: tuple[str, str], what: object, within: float = -1
    ) -> Future[Any]:
        data = ForkingPickler.dumps(what)
        future = Future[Any]()
        future.set_running_or_notify_cancel()  # the process runs it: it cannot be cancelled
        if not self._lock.acquire(timeout=within):
            raise TimeoutError("the process does not take what another call sends")
        try:
            number = next(self._numbers)
            self._futures[number] = future
            try:
                self._connection.send((kind, number, module))
                self._connection.send_bytes(data)
            except OSError:
                self._futures.pop(number, None)
                future.set_exception(self._ended())
        finally:
            self._lock.release()
        return future

    def _read(self) -> None:
        """Take the answers, until the process ends."""
        with contextlib.suppress(OSError, EOFError):
            while True:
                number, is_error = self._connection.recv()
                data = self._connection.recv_bytes()
                future = self._futures.pop(number)
                try:
                    outcome = ForkingPickler.loads(data)
                except Exception as error:  # noqa: BLE001 - it goes to the test
                    is_error, outcome = True, error
                if is_error:
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)
        with self._lock:
            left = list(self._futures.values())
            self._futures.clear()
        for future in left:
            future.set_exception(self._ended())

    def _ended(self) -> ProcessEnded:
        return ProcessEnded(f"rank {self.rank} has ended, with {self._process.wait()}")


class Processes(ByRank[Process]):
    """Processes that are members of a new group, by rank."""

    def __init__(self, count: int, timeout: float | None = None) -> None:
        super().__init__()
        with self._starting(count) as address:
            seed = os.environ.get("PYTHONHASHSEED") or str(secrets.randbits(32))  # one for all
            for rank in range(count):
                process = Process(address, rank, {**os.environ, "PYTHONHASHSEED": seed})
                self._members.append(process)
                self._open.callback(process.close)
            for process in self._members:
                process.join_group().result(timeout)

    def run(
        self, function: Callable[Concatenate[Group, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        """Call `function(group, *args)` in all of them at the same time; the results by rank."""
        futures = [process.start(function, *args, **kwargs) for process in self._members]
        return [future.result() for future in futures]

    def kill(self, rank: int) -> None:
        """End a process with SIGKILL: the others go on without it."""
        self._members[rank].kill()

    def pause(self, rank: int) -> None:
        """Stop a process with SIGSTOP, until `resume(rank)`."""
        self._members[rank].pause()

    def resume(self, rank: int) -> None:
        """Let a process go on that was paused."""
        self._members[rank].resume()

    def report(self) -> str:
        """What each of them does."""
        return "\n".join(process.report() for process in self._members)
