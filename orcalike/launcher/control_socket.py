"""The control socket of a run: one line of JSON asks, one line of JSON answers.

It is `control` in the run's folder, for this user alone (S7): the folder is 0700, the socket 0600,
and the user that connects is asked for by SO_PEERCRED. Bad input is answered with an error; no input can make
the launcher wait or keep much.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from orcalike.launcher.timers import Timers
from orcalike.transport.drivers.sockets import process_and_user

NAME = "control"
#: The longest question.
REQUEST_MAX = 4096
#: After how long it is tried again to take a connection for which there was no descriptor.
AGAIN_SECONDS = 1.0
#: How many may be connected at a time, and for how long.
CONNECTIONS_MAX = 8
CONNECTION_SECONDS = 5.0

_GONE = (errno.EAGAIN, errno.ECONNABORTED, errno.EINTR)
"""The other end has gone again."""

Answer = dict[str, Any]


class Refused(Exception):
    """A question that cannot be answered, or a deed that cannot be done; the text says why."""


class Busy(Exception):
    """A launcher that is there has taken the question of no further connection."""


class Stopped(Exception):
    """A launcher that is there stands still, as after Ctrl-Z."""


class ControlSocket:
    """The launcher's side.

    `answer(question, reply)` gets what was asked, as JSON has it, and calls `reply` with the answer, at
    once or later; it may raise Refused.
    """

    def __init__(
        self,
        directory: Path,
        selector: selectors.BaseSelector,
        timers: Timers,
        answer: Callable[[object, Callable[[Answer], None]], None],
    ) -> None:
        """Listen; raises OSError if the system has no room for it."""
        self._selector = selector
        self._timers = timers
        self._answer = answer
        self._open: dict[socket.socket, bytes] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.setblocking(False)
        old = os.umask(0o177)
        try:
            self._listener.bind(str(directory / NAME))
        finally:
            os.umask(old)
        self._listener.listen(CONNECTIONS_MAX)
        self._listen()

    def _listen(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            if error.errno not in _GONE:  # it waits on, and the listener would stay readable
                self._selector.unregister(self._listener)
                self._timers.at("control", AGAIN_SECONDS, self._listen)
            return
        connection.setblocking(False)
        _, user = process_and_user(connection)
        if len(self._open) >= CONNECTIONS_MAX or user != os.getuid():
            connection.close()
            return
        self._open[connection] = b""
        self._selector.register(connection, selectors.EVENT_READ, partial(self._read, connection))
        close = partial(self._close, connection)
        self._timers.at(f"control {connection.fileno()}", CONNECTION_SECONDS, close)

    def _read(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(REQUEST_MAX)
        except OSError:
            data = b""
        asked = self._open[connection] = self._open[connection] + data
        if b"\n" not in asked and data and len(asked) <= REQUEST_MAX:
            return
        if not asked:
            self._close(connection)
            return
        self._selector.unregister(connection)  # one question is all that is read
        self._ask(asked, partial(self._reply, connection))

    def _ask(self, asked: bytes, reply: Callable[[Answer], None]) -> None:
        line, end, _ = asked.partition(b"\n")
        if not end or len(line) > REQUEST_MAX:
            reply({"error": f"not a line of at most {REQUEST_MAX} bytes"})
            return
        try:
            question = json.loads(line)
        except (ValueError, RecursionError):
            reply({"error": "not JSON"})
            return
        try:
            self._answer(question, reply)
        except Refused as refusal:
            reply({"error": str(refusal)})

    def _reply(self, connection: socket.socket, answer: Answer) -> None:
        if connection in self._open:  # else its time was over
            self._open[connection] = json.dumps(answer).encode() + b"\n"
            write = partial(self._write, connection)
            self._selector.register(connection, selectors.EVENT_WRITE, write)

    def _write(self, connection: socket.socket) -> None:
        rest = self._open[connection]
        try:
            rest = rest[connection.send(rest) :]
        except OSError:
            rest = b""
        self._open[connection] = rest
        if not rest:
            self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        if self._open.pop(connection, None) is not None:
            self._timers.cancel(f"control {connection.fileno()}")
            with contextlib.suppress(KeyError):  # its question is being answered
                self._selector.unregister(connection)
            connection.close()


def ask(directory: Path, question: Answer, seconds: float) -> Answer:
    """Ask the run that has this folder.

    Raises TimeoutError if no answer comes, Stopped or Busy if none will come now, another OSError if there is no
    such run, ValueError if what comes is not JSON.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        try:
            connection.connect(str(directory / NAME))
            if _is_stopped(connection):
                raise Stopped
            connection.sendall(json.dumps(question).encode() + b"\n")
            with connection.makefile() as answers:
                line = answers.readline()
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            raise Busy from None
        if not line:
            raise Busy
        answer: Answer = json.loads(line)
        return answer


def _is_stopped(connection: socket.socket) -> bool:
    """Whether the process that listens at the other end stands still, as far as this one may see it."""
    process, _ = process_and_user(connection)
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] == "T"
