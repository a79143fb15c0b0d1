"""A template that does not do what it should: it is done without, or the rank cannot be started."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

import pytest

from orcalike.launcher import template
from orcalike.launcher.bootstrap import REQUEST_MAX
from orcalike.launcher.template import Template

LOADS_FOR_EVER = "import time; time.sleep(3600)"
ANSWERS_NOTHING = """
import os, socket, time
line = socket.socket(fileno=int(os.environ["ORCALIKE_TEMPLATE_FD"]))
line.send(b"ready")
time.sleep(3600)
"""
SAYS_SOMETHING_ELSE = ANSWERS_NOTHING.replace("ready", "unready")


@contextmanager
def started(source: str) -> Iterator[Template]:
    made = Template([sys.executable, "-c", source], dict(os.environ), None)
    try:
        yield made
    finally:
        made.close()


def test_one_that_does_not_load_in_time_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "LOAD_SECONDS", 0.05)
    with started(LOADS_FOR_EVER) as made:
        assert not made.is_ready
        assert not made.is_ready  # it is not asked again


@pytest.mark.parametrize("source", ["", SAYS_SOMETHING_ELSE], ids=["ends", "other words"])
def test_one_that_ends_or_says_something_else_is_none(source: str) -> None:
    with started(source) as made:
        assert not made.is_ready


def test_a_rank_that_does_not_begin_in_time_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "LOAD_SECONDS", 3600.0)
    monkeypatch.setattr(template, "FORK_SECONDS", 0.05)
    make_pipe, readers = template._pipe, list[BinaryIO]()

    def recorded(ends: ExitStack) -> tuple[BinaryIO, int]:
        reader, writer = make_pipe(ends)
        readers.append(reader)
        return reader, writer

    monkeypatch.setattr(template, "_pipe", recorded)
    with started(ANSWERS_NOTHING) as made:
        assert made.is_ready
        with pytest.raises(TimeoutError) as raised:
            made.fork(os.environ, {}, 0)
    assert raised.value.errno == errno.ETIMEDOUT
    assert [reader.closed for reader in readers] == [True, True]


def test_variables_without_a_bound_are_an_error() -> None:
    with started(ANSWERS_NOTHING) as made, pytest.raises(OSError, match="variables of ") as raised:
        made.fork({**os.environ, "LONG": "x" * REQUEST_MAX}, {}, 0)
    assert raised.value.errno == errno.E2BIG


def test_only_what_differs_is_sent_and_what_is_missing_is_removed() -> None:
    """The template's word of the process that it forked is taken; here it repeats the request instead."""
    source = """
import json, os, socket
line = socket.socket(fileno=int(os.environ["ORCALIKE_TEMPLATE_FD"]))
line.send(b"ready")
request, descriptors, _, _ = socket.recv_fds(line, 1 << 17, 16)
wanted = {"changed": {"RANK": "1", "NEW": "here"}, "removed": ["OLD"], "names": ["A_FD"]}
right = json.loads(request) == wanted and len(descriptors) == 4
line.send(json.dumps({"pid": 1} if right else {"errno": 22}).encode())
"""
    environment = {**os.environ, "RANK": "0", "OLD": "there"}
    made = Template([sys.executable, "-c", source], environment, None)
    try:
        wanted = {**os.environ, "RANK": "1", "NEW": "here", "A_FD": "0"}
        assert made.is_ready
        forked = made.fork(wanted, {"A_FD": 0}, 0)
        assert forked is not None
        process, (out, err) = forked
        assert process.pid == 1
        out.close()
        err.close()
    finally:
        made.close()
