"""Input for a rank 0 on another host, of a file that other processes read, too."""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable

import pytest

from orcalike.launcher import input_relay
from orcalike.launcher.input_relay import InputRelay
from orcalike.launcher.nonblocking import reopen
from orcalike.launcher.timers import Timers


class Child:
    """It takes what it is given."""

    ended = False

    def __init__(self) -> None:
        self.given: list[bytes] = []
        self.on_input_taken: Callable[[int], None] = lambda count: None

    def give_input(self, data: bytes) -> None:
        self.given.append(data)


def test_input_that_another_process_has_taken_does_not_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The event that says that there is some may come to several processes."""
    reader, writer = os.pipe()
    own = reopen(reader, os.O_RDONLY)
    monkeypatch.setattr(input_relay, "reopen", lambda descriptor, access: own)
    child = Child()
    with selectors.DefaultSelector() as selector:
        relay = InputRelay(selector, Timers())
        relay.attend(child)  # type: ignore[arg-type]
        os.write(writer, b"taken\n")
        ((key, _),) = selector.select(0)
        assert os.read(reader, 100) == b"taken\n"
        key.data()
        assert child.given == []
        os.write(writer, b"left\n")
        ((key, _),) = selector.select(0)
        key.data()
        os.close(writer)
        ((key, _),) = selector.select(0)
        key.data()
        assert child.given == [b"left\n", b""]
    os.close(own)
    os.close(reader)
