"""What a socket has from the start."""

from __future__ import annotations

import socket

from orcalike.transport.drivers import sockets


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
