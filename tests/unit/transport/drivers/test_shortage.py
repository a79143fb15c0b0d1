"""A moment without descriptors: what a connection brings along is brought again later, and nothing is decided for good."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from orcalike.transport.drivers import pidfd
from orcalike.transport.drivers.pidfd import OwnProcess
from tests.lib.descriptors import count_files, without_descriptors
from tests.lib.member_process import End, Ends, Sender, greet, peer_is_linked
from tests.unit.transport.drivers.test_greetings import is_shut, refusals

NO_ROOM = "Too many open files"


@pytest.fixture
def own() -> Iterator[OwnProcess]:
    """What the other end passes: here it is this process as well."""
    made = OwnProcess()
    yield made
    del made


def watched() -> int:
    """Pidfds that this process has."""
    return sum(pidfd.is_pidfd(int(fd)) for fd in os.listdir("/proc/self/fd"))


@contextlib.contextmanager
def connected(end: End) -> Iterator[socket.socket]:
    """A connection that the end has accepted."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(end.member.address.removeprefix("unix:"))
        for _ in range(20):
            end.pump.handle()
        yield sock


@pytest.mark.parametrize("free", [0, 1])
def test_a_connection_whose_descriptors_are_cut_off_is_closed_and_brings_them_again(
    end: End, tmp_path: Path, own: OwnProcess, free: int
) -> None:
    greeting, given = greet(f"unix:{tmp_path}/x", 77), [own.fd, own.files]
    with connected(end) as sock:  # so that it is known how processes are known
        sock.sendall(greet(f"unix:{tmp_path}/w", 76))
        end.until(lambda: peer_is_linked(end, 76))
    end.until(lambda: not peer_is_linked(end, 76))
    with connected(end) as sock:
        before = count_files()
        with without_descriptors(free):
            socket.send_fds(sock, [greeting], given)
            end.until(lambda: is_shut(end, sock))
        assert NO_ROOM in str(refusals(end))
        assert count_files() == before - 1
    assert not peer_is_linked(end, 77)
    before = watched()
    with connected(end) as sock:
        socket.send_fds(sock, [greeting], given)
        end.until(lambda: peer_is_linked(end, 77))
        end.until(lambda: watched() == before + 1)


@pytest.mark.parametrize(("free", "greets"), [(1, False), (2, False), (3, False), (4, True)])
def test_a_connection_is_made_only_with_room_for_what_the_other_end_passes(
    make_end: Ends, tmp_path: Path, free: int, greets: bool
) -> None:
    """Else it would end when that comes: to the other end a link that stands, and breaks at once."""
    own = make_end(f"unix:{tmp_path}/own")
    with socket.socket(socket.AF_UNIX) as listener, connected(own):  # so it knows its own process
        listener.bind(str(tmp_path / "there"))
        listener.listen()
        with without_descriptors(free):
            own.join(f"unix:{tmp_path}/there")
            for _ in range(20):
                own.pump.handle()
        there, _ = listener.accept()
        with there:
            assert bool(there.recv(4096)) is greets


def test_with_room_for_what_comes_along_but_none_to_look_at_it_the_same(
    end: End, tmp_path: Path, own: OwnProcess
) -> None:
    greeting, given = greet(f"unix:{tmp_path}/x", 77), [own.fd, own.files]
    with connected(end) as sock:
        sock.sendall(greet(f"unix:{tmp_path}/w", 76))
        end.until(lambda: peer_is_linked(end, 76))
    with connected(end) as sock, without_descriptors(2):
        socket.send_fds(sock, [greeting], given)
        end.until(lambda: is_shut(end, sock))
    assert NO_ROOM in str(refusals(end))
    assert not peer_is_linked(end, 77)
    with connected(end) as sock:
        socket.send_fds(sock, [greeting], given)
        end.until(lambda: peer_is_linked(end, 77))


def test_more_than_two_descriptors_that_are_cut_off_are_no_shortage(
    end: End, tmp_path: Path, own: OwnProcess
) -> None:
    with connected(end) as sock:
        socket.send_fds(
            sock, [greet(f"unix:{tmp_path}/x", 77)], [own.fd, own.files, *[own.fd] * 20]
        )
        end.until(lambda: peer_is_linked(end, 77))
    assert refusals(end) == []


def test_whether_numbers_are_known_is_looked_at_again(
    make_end: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without descriptors no connection is taken; with some the one that claims to be another's is seen."""
    end = make_end(f"unix:{tmp_path}/first")
    end.join("")
    looks = []

    def look(fd: int) -> bool:
        looks.append(fd)
        if len(looks) == 1:
            raise OSError(24, NO_ROOM)
        return pidfd.pid_of(fd) == os.getpid()

    monkeypatch.setattr(pidfd, "are_numbers_known", look)
    with connected(end) as sock:
        sock.sendall(greet(f"unix:{tmp_path}/x", 77))
        end.until(lambda: is_shut(end, sock))
    assert NO_ROOM in str(refusals(end))
    sender = Sender(end, f"unix:{tmp_path}/second")
    try:
        sender.come_in()
        other = os.pidfd_open(sender.pid)
        with connected(end) as sock:
            socket.send_fds(sock, [greet(f"unix:{tmp_path}/x", 78)], [other])
            end.until(lambda: is_shut(end, sock))  # lines of refusals come once a second
        assert not peer_is_linked(end, 78)
        os.close(other)
    finally:
        sender.close()


def test_without_descriptors_nothing_is_said_of_a_process() -> None:
    """An error that passes is raised, so that it is not taken for what lasts."""
    own = pidfd.own()
    with without_descriptors():
        with pytest.raises(OSError, match=NO_ROOM):
            pidfd.own()
        with pytest.raises(OSError, match=NO_ROOM):
            OwnProcess()
        with pytest.raises(OSError, match=NO_ROOM):
            pidfd.pid_of(own)
    os.close(own)
