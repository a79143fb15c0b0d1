"""The line between a process and its launcher, from the process's side."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orcalike.launch_protocol import control_channel, descriptions
from orcalike.launch_protocol.control_lines import (
    LINE_MAX,
    Describe,
    Described,
    Joining,
    Unblocked,
    encode,
    parse_for_launcher,
    parse_for_process,
)
from orcalike.launch_protocol.deaths import DEATHS_MAX, Deaths
from orcalike.launch_protocol.descriptions import Description, Forked, SharedObject, Wait
from orcalike.launch_protocol.outgoing_lines import WAITING_MAX, OutgoingLines
from orcalike.launcher.group_status import Groups
from orcalike.launcher.local_child import ControlLine
from orcalike.transport.view import Member

NOTHING = frozenset[int | None]()


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The launcher's end of this process's line; all is forgotten at the end."""
    for name, value in {
        "_ended": set(),
        "_to_make": {},
        "_died": Deaths(),
        "_cut": NOTHING,
        "_sent": {},
    }.items():
        monkeypatch.setattr(control_channel, name, value)
    for name in ("_on_ended", "_on_make", "_on_died", "_on_gone", "_on_cut", "_on_describe"):
        monkeypatch.setattr(control_channel, name, [])
    monkeypatch.setattr(control_channel, "_own_descriptor", None)
    monkeypatch.setattr(control_channel, "_reading", False)
    theirs, ours = socket.socketpair()
    theirs.setblocking(False)
    ours.settimeout(30)
    file = os.fstat(theirs.fileno())
    own = f"{theirs.fileno()}:{os.getpid()}:{file.st_dev}:{file.st_ino}"
    monkeypatch.setenv("ORCALIKE_CONTROL_FD", own)
    with theirs, ours:
        yield ours
        with contextlib.suppress(OSError):  # the test has closed it
            ours.shutdown(socket.SHUT_RDWR)  # the end of the thread that reads
        for thread in threading.enumerate():
            if thread.name == "orcalike control":
                thread.join(30)


def test_what_the_launcher_says(line: socket.socket) -> None:
    received: queue.SimpleQueue[object] = queue.SimpleQueue()
    line.sendall(b"ended 2\ndied 77\n")
    control_channel.listen(lambda ranks: received.put(("ended", ranks)))
    assert received.get(timeout=30) == ("ended", {2})
    control_channel.listen_died(lambda incarnation: received.put(("died", incarnation)))
    assert received.get(timeout=30) == ("died", 77)
    control_channel.listen_gone(lambda incarnation: received.put(("gone", incarnation)))
    control_channel.listen_make(lambda incarnation: received.put(("make", incarnation)))
    control_channel.listen_cut(lambda others: received.put(("cut", others)))
    for sent, expected in (
        (b"end", None),
        (b"ed 1\n", ("ended", {1, 2})),
        (b"died 18446744073709551615\n", ("died", 2**64 - 1)),
        (b"gone 78\n", ("gone", 78)),
        (b"make a%20group 12\n", ("make", 12)),
        (b"cut 2,w\n", ("cut", {2, None})),
        (b"ended x\nnonsense\n\xff\n\nheal\n", ("cut", NOTHING)),
    ):
        line.sendall(sent)
        if expected:
            assert received.get(timeout=30) == expected
    assert received.empty()


def test_a_late_listener_gets_what_was_sent_before(line: socket.socket) -> None:
    received: list[object] = []
    for said in ("ended 1", "died 5", "cut 3,w"):
        assert control_channel.receive(said)
    control_channel.listen(received.append)
    control_channel.listen_died(received.append)
    control_channel.listen_cut(received.append)
    assert received == [{1}, 5, {3, None}]
    assert control_channel.receive("gone 6")
    control_channel.listen_gone(received.append)
    assert received == [{1}, 5, {3, None}], "it may be wrong, and is not repeated"
    control_channel.forget(received.append)
    assert control_channel.receive("ended 2")
    assert len(received) == 3
    assert not control_channel.receive("quit")


def fill(descriptor: int) -> None:
    """Write on a line until there is no room for a byte more."""
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(descriptor, b"\n" * 1024)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(descriptor, b"\n")


def test_no_report_is_lost_while_the_launcher_does_not_read(line: socket.socket) -> None:
    """Of how a group stands the last one comes, and each member that joins; an answer does not wait."""
    fill(int(os.environ["ORCALIKE_CONTROL_FD"].split(":")[0]))
    for incarnation in range(1000):
        control_channel.report_joining("one", incarnation)
        control_channel.report_unblocked("one")
    control_channel.report_joining("other", 7)
    control_channel.report_state(Described(1, "one", STANDS))
    control_channel.report_blocked("one", [], "why")
    control_channel.report_sequencer("other")
    received = b""
    while b"sequencer other" not in received:
        received += line.recv(1 << 16)
    assert received.decode().split("\n")[-1] == ""
    assert list(filter(None, received.decode().split("\n"))) == [
        *(f"joining one {incarnation}" for incarnation in range(1000)),
        "joining other 7",
        "blocked one - why",
        "sequencer other",
    ]
    control_channel.report_unblocked("one")
    assert line.recv(1 << 16) == b"unblocked one\n"


def test_reports_that_wait_are_bounded() -> None:
    theirs, ours = socket.socketpair()
    with theirs, ours:
        theirs.setblocking(False)
        fill(theirs.fileno())
        lines = OutgoingLines(theirs.fileno)
        for incarnation in range(WAITING_MAX + 9):
            lines.send(Joining("one", incarnation))
        received = b""
        while not received.endswith(b" %d\n" % (WAITING_MAX + 8)):
            received += ours.recv(1 << 16)
        assert received.strip().split(b"\n")[0] == b"joining one 9"


def test_what_the_launcher_receives(line: socket.socket) -> None:
    missing = [Member("", 5, 1), Member("", 6, None, witness=True)]
    control_channel.report_joining("a group", 99)
    control_channel.report_unblocked("a group")
    control_channel.report_unblocked("a group")
    control_channel.report_sequencer("a group")
    control_channel.report_blocked("a group", missing, "of 5\nthere are 2")
    control_channel.report_blocked("a group", missing, "of 5\nthere are 2")
    control_channel.report_unblocked("a group")
    assert line.recv(4096).decode().splitlines() == [
        "joining a%20group 99",
        "unblocked a%20group",
        "sequencer a%20group",
        "blocked a%20group 5:1,6:w of 5 there are 2",
        "unblocked a%20group",
    ]


def test_both_ends_fit(line: socket.socket) -> None:
    """The launcher understands what the members report, in a view of the largest size too."""
    incarnations = [2**64 - 1 - rank for rank in range(1024)]
    groups = Groups()
    for rank, incarnation in enumerate(incarnations[1:], 1):
        groups.receive(rank, f"joining default {incarnation}")
        groups.receive(rank, "unblocked default")
        groups.end(rank)
    control_channel.report_joining("default", 7)
    missing = [Member("", incarnation, rank) for rank, incarnation in enumerate(incarnations)][1:]
    control_channel.report_blocked("default", missing, "x" * 100_000)
    line.setblocking(False)
    lines = ControlLine(line).receive()
    assert lines is not None
    assert len(lines) == 2
    for said in lines:
        groups.receive(0, said)
    loss = groups.loss([0])
    assert loss is not None
    assert len(loss.missed) == 1023


@pytest.mark.parametrize("value", ["", "x", "9", "9:1", "9:1:1:1", ":::", "-1:1:1:1"])
def test_outside_of_a_launched_program_nothing_is_reported(
    line: socket.socket, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """What a rank starts inherits its variables, and not its descriptors."""
    monkeypatch.setenv("ORCALIKE_CONTROL_FD", value)
    control_channel.report_joining("default", 1)
    control_channel.listen(lambda ranks: None)
    assert not control_channel._reading
    line.setblocking(False)
    with pytest.raises(BlockingIOError):
        line.recv(1)


def test_another_file_under_that_number_gets_nothing(line: socket.socket) -> None:
    """A program that a rank becomes has its PID and its variables, and not its descriptors."""
    number = int(os.environ["ORCALIKE_CONTROL_FD"].partition(":")[0])
    reader, writer = os.pipe()
    kept = os.dup(number)
    os.dup2(writer, number)
    try:
        control_channel.report_joining("default", 1)
        control_channel.listen(lambda ranks: None)
        assert not control_channel.is_open()
        os.set_blocking(reader, False)
        with pytest.raises(BlockingIOError):
            os.read(reader, 1)
    finally:
        os.dup2(kept, number)
        for descriptor in (kept, reader, writer):
            os.close(descriptor)


def test_forked_child_says_nothing(line: socket.socket) -> None:
    pid = os.fork()
    if pid == 0:
        control_channel.report_unblocked("default")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    line.setblocking(False)
    with pytest.raises(BlockingIOError):
        line.recv(1)


def test_what_a_rank_has_started_reports_which_member_it_is(line: socket.socket) -> None:
    """With a short wait if there is no room; the rank itself does not: it reports more."""
    assert not control_channel.report_member(6)
    descriptor = int(os.environ["ORCALIKE_CONTROL_FD"].split(":")[0])
    fill(descriptor)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if control_channel.report_member(7) else 1)
    received = b""
    while not received.endswith(b"member 7\n"):
        received += line.recv(1 << 16)
    assert os.waitpid(pid, 0)[1] == 0


def test_without_the_rank_s_line_no_member_is_reported(
    line: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not passed on, or the launcher does not read it any more."""
    _, _, *file = os.environ["ORCALIKE_CONTROL_FD"].split(":")
    number = os.environ["ORCALIKE_CONTROL_FD"].split(":")[0]
    monkeypatch.setenv("ORCALIKE_CONTROL_FD", ":".join([number, "1", *file]))
    line.shutdown(socket.SHUT_RD)
    assert not control_channel.report_member(7)
    reader, writer = os.pipe()
    monkeypatch.setenv("ORCALIKE_CONTROL_FD", ":".join([str(writer), "1", *file]))
    assert not control_channel.report_member(7)
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_of_many_deaths_the_last_are_known(line: socket.socket) -> None:
    for incarnation in range(DEATHS_MAX + 2):
        assert control_channel.receive(f"died {incarnation}")
    assert not control_channel.has_died(1)
    assert control_channel.has_died(2)
    found: list[int] = []
    control_channel.listen_died(found.append)
    assert found == [*range(2, DEATHS_MAX + 2)]


def test_launcher_that_has_gone_is_no_error(line: socket.socket) -> None:
    line.close()
    control_channel.report_unblocked("default")
    assert control_channel._sent == {"default": Unblocked("default")}


def test_the_witness_speaks_by_a_descriptor(line: socket.socket, tmp_path: Path) -> None:
    with (tmp_path / "said").open("wb", buffering=0) as file:
        control_channel.speak_by(file.fileno())
        control_channel.report_sequencer("default")
        control_channel.listen_cut(lambda others: None)
    assert (tmp_path / "said").read_text() == "sequencer default\n"
    assert not control_channel._reading


def standing(**lists: Any) -> Description:
    """A description, with these lists."""
    return Description(3, 2, True, False, 1 << 40, "majority", 5, 6, 0, **lists)


STANDS = standing()


def test_how_a_group_stands() -> None:
    """The question and its answer are read as they were written."""
    for question in (Describe(7), Describe(7, objects=True)):
        assert parse_for_process(encode(question)) == question
    waits = (Wait("guard", "Queue.get", "a b\n%", 1.5), Wait("call", "", "", None))
    shared = (SharedObject("é", "m:C", 1, 0, 2, 3),)
    forked = (Forked(None, 7, "m:f"), Forked(3, 8, "m:f"))
    for stands in (STANDS, standing(waits=waits, shared=shared, forked=forked)):
        described = Described(7, "a b%", stands)
        assert "\n" not in encode(described)
        assert parse_for_launcher(encode(described)) == described


def test_what_is_no_description_is_let_pass() -> None:
    good = descriptions.plain(STANDS)
    wait = descriptions.plain(Wait("guard", "", "", 1))
    wrong = [
        *(
            {**good, name: value}
            for name in good
            for value in ("x" if name != "resilience" else [], -1)
        ),
        *({key: value for key, value in good.items() if key != name} for name in good),
        {**good, "more": 1},
        {**good, "view": True},
        {**good, "primary": 1},
        {**good, "waits": [{**wait, "kind": 3}]},
        {**good, "waits": [wait] * (descriptions.WAITS_MAX + 1)},
        [good],
        None,
    ]
    texts = [*map(json.dumps, wrong), "", "{", "[" * 20_000]
    assert [text for text in texts if descriptions.parse(text) is not None] == []
    assert parse_for_launcher(f"described -1 g {json.dumps(good)}") is None


def test_a_line_has_room_for_what_is_described() -> None:
    """Names of any length, and many of them, are left out and not cut in the middle."""
    many = tuple(SharedObject("\N{SNOWMAN}" * 1000, "m:C", 0, 0, 0, n) for n in range(1000))
    described = Described(1, "g", standing(shared=many))
    line = encode(described)
    assert len(line) < LINE_MAX
    found = parse_for_launcher(line)
    assert isinstance(found, Described)
    shared = found.description.shared
    assert [each.queued for each in shared] == list(range(len(shared)))
    assert {each.name for each in shared} == {"\N{SNOWMAN}" * descriptions.TEXT_MAX}


def test_a_listener_is_asked(line: socket.socket) -> None:
    asked: queue.SimpleQueue[Describe] = queue.SimpleQueue()
    control_channel.listen_describe(asked.put)
    line.sendall(b"describe x\ndescribe 12 x\ndescribe 12 objects\n")
    assert asked.get(timeout=30) == Describe(12, objects=True)
    described = Described(12, "default", STANDS)
    control_channel.report_state(described)
    assert parse_for_launcher(line.recv(1000).decode().rstrip("\n")) == described
