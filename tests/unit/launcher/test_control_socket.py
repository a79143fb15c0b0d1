"""The launcher's control socket when the process has no descriptor left."""

from __future__ import annotations

import contextlib
import errno
import json
import selectors
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orcalike.launcher.control_socket import NAME, Answer, ControlSocket
from orcalike.launcher.timers import Timers


class Full(socket.socket):
    """A listener that can take no connection, as with EMFILE, until there is room."""

    has_room = False

    def accept(self) -> tuple[socket.socket, object]:
        """Refuse it, or not."""
        if not self.has_room:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def answer(question: object, reply: Callable[[Answer], None]) -> None:
    reply({"done": str(question)})


def turn(selector: selectors.BaseSelector, timeout: float) -> int:
    """One turn of a launcher's loop; how many events it had."""
    registered = selector.get_map()
    events = selector.select(timeout)
    for key, _ in events:
        if registered.get(key.fd) is key:
            key.data()
    return len(events)


def test_an_answer_that_no_buffer_takes_at_once_comes_whole(tmp_path: Path) -> None:
    """Such as that of many objects, to one that reads when it likes."""
    text = "x" * 4_000_000

    def long(question: object, reply: Callable[[Answer], None]) -> None:
        reply({"done": text})

    with selectors.DefaultSelector() as selector, socket.socket(socket.AF_UNIX) as client:
        control = ControlSocket(tmp_path, selector, Timers(), long)
        client.connect(str(tmp_path / NAME))
        client.sendall(b"1\n")
        for _ in range(2):  # taken, read
            assert turn(selector, 10.0) == 1
        said = b""
        while not said.endswith(b"\n"):
            turn(selector, 10.0)
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while part := client.recv(1 << 20):
                    said += part
            assert len(said) < 2 * len(text), "no part comes twice"
        assert json.loads(said) == {"done": text}
        assert client.recv(1) == b""
        control._listener.close()


def test_a_connection_that_cannot_be_taken_is_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = Timers()
    with selectors.DefaultSelector() as selector, socket.socket(socket.AF_UNIX) as client:
        with monkeypatch.context() as patch:
            patch.setattr(socket, "socket", Full)
            control = ControlSocket(tmp_path, selector, timers, answer)
        client.connect(str(tmp_path / NAME))
        client.sendall(b'"is it there"\n')
        assert turn(selector, 10.0) == 1
        assert turn(selector, 0.0) == 0, "it is readable still, and the loop would spin"
        monkeypatch.setattr(Full, "has_room", True)
        timers.expire(time.monotonic() + 3600.0)
        for _ in range(3):  # taken, read, answered
            assert turn(selector, 10.0) == 1
        assert json.loads(client.makefile().readline()) == {"done": "is it there"}
        control._listener.close()
