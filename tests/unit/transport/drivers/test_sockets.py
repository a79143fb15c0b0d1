"""What a socket has from the start."""

from __future__ import annotations

import socket

import pytest

from orcalike.transport.drivers import sockets
from tests.lib.member_process import Ends

SECOND = 1_000_000_000


def test_both_ends_of_a_connection_by_tcp_notice_that_the_other_host_is_lost() -> None:
    """Also if nothing is under way: then the kernel asks the other end, and gives it up after a quarter of an hour."""
    listening, address = sockets.listen("tcp:127.0.0.1:0")
    listening.setblocking(True)
    with listening, sockets.connect(address) as connecting:
        accepting, _ = listening.accept()
        with accepting:
            sockets.accepted(accepting)
            for end in (connecting, accepting):
                assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
                idle, each, often = (
                    end.getsockopt(socket.IPPROTO_TCP, option)
                    for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
                )
                assert idle + each * often == 900


@pytest.mark.parametrize(("slow", "stands"), [(60, 900), (3600, 7200), (3_000_000, 2_147_483.647)])
def test_a_connection_by_tcp_stands_for_as_long_as_a_member_may_leave_all_unread(
    make_end: Ends, monkeypatch: pytest.MonkeyPatch, slow: int, stands: float
) -> None:
    """TCP would end one whose other end has no room, though that acknowledges all the while: a slow member would be lost."""
    if not _has_bound():
        pytest.skip(
            "this kernel has no bound for the time between two tries, and needs none for all of them"
        )
    found: list[int] = []
    outlast = sockets.outlast

    def recorded(sock: socket.socket, slow: int) -> None:
        outlast(sock, slow)
        found.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))

    monkeypatch.setattr(sockets, "outlast", recorded)
    first, second = (make_end("tcp:127.0.0.1:0", 3 * SECOND, slow * SECOND) for _ in range(2))
    first.join("")
    second.join(first.member.address)

    def is_joined() -> bool:
        first.pump.handle()
        return second.view is not None

    second.until(is_joined)
    assert found == [round(1000 * stands)] * 2, "that which connects, and that which was accepted"


def _has_bound() -> bool:
    with socket.socket() as probe:
        try:
            probe.getsockopt(socket.IPPROTO_TCP, sockets.TCP_RTO_MAX_MS)
        except OSError:
            return False
    return True
