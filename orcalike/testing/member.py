"""The program of a process that a test has started: a member that runs the functions it is sent.

`python -m orcalike.testing.member FD`, with one end of a socket pair. The main thread joins and runs
the functions; another one takes what comes, and answers what the process does even if the main
thread does not get on. It ends with the test's process.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import orcalike as orca
from orcalike.launcher import stack_dump
from orcalike.testing.reports import report
from orcalike.transport.drivers.deferral import OwnThread

Work = tuple[int, Callable[[], Any]]


class Member:
    """This process, as the test sees it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._work: SimpleQueue[Work] = SimpleQueue()
        self._group: orca.Group | None = None
        self._lock = threading.Lock()
        sys.path[:], self._address, self._rank = connection.recv()

    def run(self) -> None:
        """Run what comes, for good."""
        OwnThread(self._take, "orcalike test").start()
        while True:
            number, function = self._work.get()
            self._answer(number, function)

    def _take(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                kind, number, (module, file) = self._connection.recv()
                data = self._connection.recv_bytes()
                try:
                    if module:
                        load(module, file)
                    what = ForkingPickler.loads(data)
                except Exception as error:  # noqa: BLE001 - it goes to the test
                    self._say(number, True, error)
                    continue
                if kind == "report":
                    self._answer(number, functools.partial(report, what))
                elif kind == "join":
                    self._work.put((number, self._join))
                else:
                    self._work.put((number, functools.partial(self._call, *what)))
        os._exit(0)  # the test has ended

    def _join(self) -> None:
        listen, seeds = (None, self._address) if self._rank else (self._address, None)
        self._group = orca.connect(listen=listen, seeds=seeds)

    def _call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return function(self._group, *args, **kwargs)

    def _answer(self, number: int, function: Callable[[], Any]) -> None:
        try:
            outcome = function()
        except BaseException as error:  # noqa: BLE001 - pytest.fail's and sys.exit's, too
            error.add_note("in " + "".join(traceback.format_exception(error)).rstrip())
            self._say(number, True, error)
        else:
            self._say(number, False, outcome)

    def _say(self, number: int, is_error: bool, outcome: object) -> None:
        try:
            data = ForkingPickler.dumps(outcome)
            # One that is pickled may not come out: its class takes other arguments.
            if is_error:
                ForkingPickler.loads(data)
        except Exception as error:  # noqa: BLE001 - it goes to the test
            instead = TypeError(
                f"{type(outcome).__name__} cannot be sent to the test: {error}; it is {outcome!r}"
            )
            for note in getattr(outcome, "__notes__", ()):
                instead.add_note(note)
            is_error, data = True, ForkingPickler.dumps(instead)
        with self._lock:
            self._connection.send((number, is_error))
            self._connection.send_bytes(data)


def load(name: str, file: str) -> None:
    """Import a module, also one that pytest has imported from its file alone."""
    if name in sys.modules:
        return
    with contextlib.suppress(ImportError):
        module = importlib.import_module(name)
        if not file or Path(module.__file__ or "").resolve() == Path(file).resolve():
            return
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} cannot be imported from {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def main() -> None:
    """Serve the test."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the test
    stack_dump.install(signal.SIGUSR1)
    Member(Connection(int(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
