"""While too many descriptors are under way none is passed: bytes go without, and later ones take them along."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.objects.counters import Counter
from orcalike.transport.drivers.pidfd import OwnProcess
from orcalike.transport.wire.message import Message
from tests.lib.descriptors import too_many_under_way, under_way, without_descriptors
from tests.lib.member_process import End, Ends, greet, peer_is_linked
from tests.unit.transport.drivers.test_shortage import watched


def test_it_does_not_end_when_others_receive_what_they_have_under_way() -> None:
    """The kernel counts those of all processes of the user, as of another test that does the same."""
    one, other = socket.socketpair()
    with ExitStack() as others, one, other:
        others.enter_context(under_way())
        with too_many_under_way():
            others.close()
            with pytest.raises(OSError, match="Too many references"):
                socket.send_fds(one, [b"x"], [other.fileno()])


def both_until_linked(end: End, other: End) -> None:
    """Drive both until each is in a view of two."""

    def are_in() -> bool:
        other.pump.handle()
        return all(each.view is not None and len(each.view.members) == 2 for each in (end, other))

    end.until(are_in)


def test_a_process_is_watched_once_its_descriptors_could_be_passed(
    end: End, make_end: Ends, tmp_path: Path
) -> None:
    other = make_end(f"unix:{tmp_path}/second")
    before = watched()
    with too_many_under_way():
        other.join(end.member.address)
        both_until_linked(end, other)
        own = watched()
        assert own <= before + 1, "each end has a pidfd of its own process, and none of the other's"
    for each in (end, other):
        each.pump.call(each.stack.cast, Message(b"x"))

    def are_watched() -> bool:
        other.pump.handle()
        return watched() == own + 2

    end.until(are_watched)
    assert not end.events_of("link_down") + other.events_of("link_down")


def test_descriptors_that_come_late_are_believed_as_others_are(end: End, tmp_path: Path) -> None:
    """Those of another process than the one that greeted are none of a member's."""
    parent = os.pidfd_open(os.getppid())
    own = OwnProcess()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(end.member.address.removeprefix("unix:"))
        sock.sendall(greet(f"unix:{tmp_path}/x", 77))
        end.until(lambda: peer_is_linked(end, 77))
        before = watched()
        socket.send_fds(sock, [b"\4\0"], [parent])
        for _ in range(50):
            end.pump.handle()
        assert watched() == before
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(end.member.address.removeprefix("unix:"))
        sock.sendall(greet(f"unix:{tmp_path}/y", 78))
        end.until(lambda: peer_is_linked(end, 78))
        before = watched()
        socket.send_fds(sock, [b"\4\0"], [own.fd, own.files])
        end.until(lambda: watched() == before + 1)
    os.close(parent)


def test_a_link_that_stands_is_not_closed_for_them(end: End, tmp_path: Path) -> None:
    """What was under way on it would be lost."""
    own = OwnProcess()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(end.member.address.removeprefix("unix:"))
        sock.sendall(greet(f"unix:{tmp_path}/x", 77))
        end.until(lambda: peer_is_linked(end, 77))
        with without_descriptors():
            socket.send_fds(sock, [b"\4\0"], [own.fd, own.files])
            for _ in range(50):
                end.pump.handle()
        assert peer_is_linked(end, 77)


def test_members_share_their_order_when_they_can(tmp_path: Path) -> None:
    def order(group: orca.Group) -> str:
        return "TOTAL" if group._session.stack.focus("RING") is None else "RING"

    with too_many_under_way():
        first = orca.join(listen=f"unix:{tmp_path}/one").__enter__()
        second = orca.join(seeds=first.address).__enter__()
        counter = second.share(Counter, "n")
        counter.add(1)
        first.fence()
        assert [order(each) for each in (first, second)] == ["TOTAL"] * 2
    for _ in range(4):
        with orca.join(seeds=first.address) as third:
            third.fence()
        second.fence()
    counter.add(1)
    assert [order(each) for each in (first, second)] == ["RING"] * 2
    assert first.share(Counter, "n").get() == 2
    second.close()
    first.close()
