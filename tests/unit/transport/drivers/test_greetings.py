"""Greetings by processes that are not what they say (promise 14): they are refused, and harm no member."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from orcalike.launcher.listeners import listen
from orcalike.transport.drivers import pidfd
from orcalike.transport.wire.message import Message
from tests.lib.descriptors import count_files
from tests.lib.member_process import (
    End,
    Sender,
    greet,
    peer_is_linked,
)


@pytest.mark.parametrize("passed", ["nothing", "no process", "several"])
def test_what_non_members_pass_is_not_believed(end: End, tmp_path: Path, passed: str) -> None:
    greeting = greet(f"unix:{tmp_path}/x", 77)
    reader, writer = os.pipe()
    os.write(writer, b"readable")
    given = {"nothing": [], "no process": [reader], "several": [reader] * 5}[passed]
    before = count_files()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(end.member.address.removeprefix("unix:"))
        socket.send_fds(sock, [greeting], given)
        end.until(lambda: peer_is_linked(end, 77))
        for _ in range(20):
            end.pump.handle()
        # The two ends of the connection, and this end's own process.
        assert count_files() <= before + 3
    end.until(lambda: end.events_of("link_down"))
    assert end.events_of("died") == []
    os.close(reader)
    os.close(writer)


def refusals(end: End) -> list[str]:
    return [text for text in end.logged if "refused" in text]


def is_shut(end: End, sock: socket.socket) -> bool:
    """Whether the other end, which the test drives, has closed it."""
    sock.setblocking(False)
    try:
        return sock.recv(65536) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize("passed", ["nothing", "its own", "that of the member"])
def test_a_greeting_as_a_member_that_is_another_process_is_refused(
    end: End, sender: Sender, tmp_path: Path, passed: str
) -> None:
    """The connection ends, and nothing else: the member's own stands."""
    end.until(lambda: peer_is_linked(end, sender.incarnation))
    member = os.pidfd_open(sender.pid)
    own = pidfd.own()
    given = {"nothing": [], "its own": [own], "that of the member": [member]}[passed]
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(end.member.address.removeprefix("unix:"))
        greeting = greet(f"unix:{tmp_path}/second", sender.incarnation)
        socket.send_fds(sock, [greeting], given)
        end.until(lambda: refusals(end))
        assert f"process {os.getpid()} greets as a member that is process {sender.pid}" in str(
            refusals(end)
        )
        end.until(lambda: is_shut(end, sock))
    os.close(own)
    os.close(member)
    assert end.events_of("problem", "link_down", "died") == []
    assert peer_is_linked(end, sender.incarnation)
    assert end.view is not None
    assert len(end.view.members) == 2
    sender.tell("kill")
    end.until(lambda: end.events_of("died"))
    assert end.events_of("died") == [("died", sender.incarnation)]


def test_an_answer_as_a_member_that_is_another_process_is_refused(
    end: End, sender: Sender, tmp_path: Path
) -> None:
    """The end that connects compares as well."""
    end.until(lambda: peer_is_linked(end, sender.incarnation))
    fake = f"unix:{tmp_path}/fake"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(fake.removeprefix("unix:"))
        listener.listen()
        end.pump.call(lambda now: end.stack.bottom.contact(Message(b""), fake))
        with listener.accept()[0] as sock:
            sock.sendall(greet(fake, sender.incarnation))
            end.until(lambda: refusals(end))
    assert f"greets as a member that is process {sender.pid}" in str(refusals(end))
    assert end.events_of("problem", "died") == []
    assert end.view is not None
    assert len(end.view.members) == 2


def test_a_greeting_with_the_descriptor_of_another_process_is_refused(
    end: End, sender: Sender, tmp_path: Path
) -> None:
    """It would be that one's end that is taken for the death of the peer."""
    member = os.pidfd_open(sender.pid)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(end.member.address.removeprefix("unix:"))
        socket.send_fds(sock, [greet(f"unix:{tmp_path}/x", 77)], [member])
        end.until(lambda: refusals(end))
    os.close(member)
    assert f"greets with a descriptor of process {sender.pid}" in str(refusals(end))
    assert not peer_is_linked(end, 77)


def test_of_a_process_that_the_kernel_does_not_name_nothing_is_certain(
    end: End, tmp_path: Path
) -> None:
    """It connected before the listening socket was asked for senders: no lie, no certain death."""
    own = pidfd.own()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{tmp_path}/early")
    listener.listen()
    listener.setblocking(False)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(f"{tmp_path}/early")
        socket.send_fds(sock, [greet(f"unix:{tmp_path}/x", 77)], [own])
        end.pump.listen(listener, f"unix:{tmp_path}/early")
        end.until(lambda: peer_is_linked(end, 77) or refusals(end))
    os.close(own)
    assert refusals(end) == []
    end.until(lambda: not peer_is_linked(end, 77))
    assert end.events_of("died") == []


def test_the_launcher_has_the_kernel_name_the_connecting_process_before_the_witness_runs() -> None:
    directory = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        with listen(f"unix:{directory}/witness", 1) as listener:
            assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED)
    finally:
        shutil.rmtree(directory)


def test_a_greeting_as_a_member_whose_process_has_ended_is_refused(
    end: End, sender: Sender, tmp_path: Path
) -> None:
    sender.tell("kill")
    end.until(lambda: end.events_of("died"))
    end.logged.clear()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(end.member.address.removeprefix("unix:"))
        socket.send_fds(sock, [greet(f"unix:{tmp_path}/second", sender.incarnation)], [])
        end.until(lambda: refusals(end))
    assert "whose process has ended" in str(refusals(end))
