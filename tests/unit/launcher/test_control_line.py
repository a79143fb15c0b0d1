"""Lines to a process that does not read: each that matters arrives, and no more wait than there can be."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
from collections.abc import Iterator
from typing import cast

import pytest

from orcalike.launch_protocol.control_lines import Cut, Describe, Died, Ended, Heal, ToProcess
from orcalike.launch_protocol.deaths import DEATHS_MAX
from orcalike.launcher.child import Exit, Stream
from orcalike.launcher.local_child import ControlLine, LocalChild
from orcalike.launcher.template import Output
from tests.lib.processes import DEADLINE, until

MANY = 1000
"""More lines than the kernel keeps for a process that reads none."""
ROOM = 4096
"""Bytes that it keeps."""


@pytest.fixture
def ends() -> Iterator[tuple[ControlLine, socket.socket]]:
    """The launcher's end of a line, and the process's."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM)
    for end in (ours, theirs):
        end.setblocking(False)
    with ours, theirs:
        yield ControlLine(ours), theirs


def read(line: ControlLine, process: socket.socket) -> list[str]:
    """All that comes of a line while the process reads and the launcher writes."""
    data = b""
    while True:
        try:
            data += process.recv(1 << 16)
        except BlockingIOError:
            if not line.waiting:
                return data.decode().splitlines()
        line.write()


def test_questions_that_are_not_read_keep_no_other_line_from_coming(
    ends: tuple[ControlLine, socket.socket],
) -> None:
    line, process = ends
    for number in range(MANY):
        line.send(Describe(number))
    assert not line.waiting, "a question is of no use later"
    line.send(Ended(7))
    line.send(Describe(MANY))
    *questions, last = read(line, process)
    assert last == "ended 7"
    assert questions == [f"describe {number}" for number in range(len(questions))]
    line.send(Describe(MANY + 1))
    assert read(line, process) == [f"describe {MANY + 1}"]


def test_all_that_waits_comes_once_and_in_order(ends: tuple[ControlLine, socket.socket]) -> None:
    line, process = ends
    for _ in range(2):
        for number in range(MANY):
            line.send(Ended(number))
        for number in range(MANY):
            line.send(Died(1 << 64 | number))
    lines = read(line, process)
    expected = [f"ended {number}" for number in range(MANY)]
    expected += [f"died {1 << 64 | number}" for number in range(MANY)]
    assert list(dict.fromkeys(lines)) == expected
    assert len(lines) < len(expected) + MANY, "a line that waits already is not queued again"


def test_of_cuts_that_wait_the_last_one_comes(ends: tuple[ControlLine, socket.socket]) -> None:
    line, process = ends
    cuts: list[ToProcess] = [Heal(), Cut(frozenset({1})), Cut(frozenset({1, None}))]
    for number in range(MANY):
        line.send(Ended(number))
    for each in cuts:
        line.send(each)
    assert read(line, process)[MANY:] == ["cut 1,w"]


def test_line_is_taken_in_parts(ends: tuple[ControlLine, socket.socket]) -> None:
    line, process = ends
    long = Cut(frozenset(range(20_000)))
    line.send(long)
    assert line.waiting
    line.send(Heal())
    first, second = read(line, process)
    assert (first.count(","), second) == (19_999, "heal")


def test_process_that_has_gone_gets_nothing(ends: tuple[ControlLine, socket.socket]) -> None:
    line, process = ends
    for number in range(MANY):
        line.send(Ended(number))
    assert line.waiting
    process.close()
    line.write()
    assert not line.waiting
    line.send(Ended(MANY))
    assert not line.waiting


def test_of_deaths_that_are_not_read_the_last_come(
    ends: tuple[ControlLine, socket.socket],
) -> None:
    line, process = ends
    line.send(Cut(frozenset(range(20_000))))  # the line is full
    line.send(Ended(7))
    for number in range(DEATHS_MAX + 9):
        line.send(Died(number))
    _, first, *deaths = read(line, process)
    assert first == "ended 7"
    assert deaths == [f"died {number}" for number in range(10, DEATHS_MAX + 9)]


def write_elsewhere(process: socket.socket, data: bytes) -> int:
    """Another process that has the process's end writes on it, and ends; gives its number."""
    pid = os.fork()
    if pid == 0:
        process.send(data)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    return pid


def test_what_another_process_writes_is_not_taken_for_the_process_s(
    ends: tuple[ControlLine, socket.socket],
) -> None:
    """Between the parts of a line, too."""
    line, process = ends
    others: list[tuple[int, str]] = []
    line.pid, line.on_other = os.getpid(), lambda *given: others.append(given)
    process.send(b"left a\nunblo")
    pid = write_elsewhere(process, b"member 7\nmember 8\nmemb")
    process.send(b"cked b\n")
    assert [line.receive() for _ in range(4)] == [["left a"], [], ["unblocked b"], []]
    assert others == [(pid, "member 7"), (pid, "member 8")]


def test_what_was_written_before_the_line_was_refused_is_received(
    ends: tuple[ControlLine, socket.socket],
) -> None:
    line, process = ends
    process.send(b"left a\n")
    line.refuse()
    with pytest.raises(BrokenPipeError):
        process.send(b"left b\n")
    assert line.receive() == ["left a"]
    assert line.receive() is None


class Nothing:
    """It observes a process, and does nothing."""

    def line(self, line: str) -> None:
        pass

    def output(self, stream: Stream, data: bytes) -> None:
        pass

    def output_ended(self, stream: Stream) -> None:
        pass

    def ended(self, end: Exit) -> None:
        pass

    def member_ended(self, incarnation: int) -> None:
        pass

    def failed_to_start(self, error: OSError) -> None:
        pass


@pytest.mark.parametrize("observed_first", [True, False])
def test_launcher_writes_on_when_the_process_has_read(observed_first: bool) -> None:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM)
    ours.setblocking(False)
    pipe = subprocess.PIPE
    theirs.settimeout(DEADLINE)
    with (
        theirs,
        selectors.DefaultSelector() as selector,
        subprocess.Popen(["sleep", "1000"], stdout=pipe, stderr=pipe, process_group=0) as process,
        contextlib.ExitStack() as cleanup,
    ):
        output = cast(Output, (process.stdout, process.stderr))
        child = LocalChild(
            *(process, output, ControlLine(ours), None),
            host="",
            restarts=0,
            kills_rest=False,
            on_reaped=lambda child: None,
        )
        cleanup.callback(process.kill)
        child.attach(selector)
        if observed_first:
            child.observe(Nothing())
        for number in range(MANY):
            child.send(Ended(number))
        if not observed_first:
            child.observe(Nothing())
        data = bytearray()
        while data.count(b"\n") < MANY:
            data += theirs.recv(1 << 16)
            for key, _ in selector.select(0):
                key.data()
        assert data.decode().split() == [
            word for number in range(MANY) for word in ("ended", str(number))
        ]
        assert selector.get_key(ours).events == selectors.EVENT_READ, "there is always room now"
        child.signal(signal.SIGKILL)
        until(lambda: _turn(selector), "it has ended")


def _turn(selector: selectors.BaseSelector) -> bool:
    """Whether nothing is left that is waited for, after what has come was taken."""
    for key, _ in selector.select(0):
        if selector.get_map().get(key.fd) is key:
            key.data()
    return not selector.get_map()
