"""One end of a connection by TCP, which reports how its kernel sends again what is lost: `send`, `receive`, `close` come on stdin.

tcp_end.py listen|connect ADDRESS
"""

from __future__ import annotations

import select
import socket
import struct
import sys

from common import DEADLINE, tell, wait_for

from orcalike.transport.drivers import sockets

TRIES = 5
"""Without a bound TCP waits for 32 times its first guess by then, which is 200 ms or more."""


def connection(way: str, address: str) -> socket.socket:
    """The connection, once it stands."""
    if way == "connect":
        end = sockets.connect(address, beyond=True)
        wait_for(lambda: select.select([], [end], [], 0)[1], "it is connected")  # noqa: TID251 - few files
        assert not sockets.error_of(end)
        return end
    listening, _ = sockets.listen(address, beyond=True)
    listening.setblocking(True)
    tell(listens=True)
    end, _ = listening.accept()
    sockets.accepted(end)
    return end


def tries_and_pause(end: socket.socket) -> tuple[int, int]:
    """How often what is not acknowledged was sent again, and the microseconds until the next time."""
    info = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 12)
    (pause,) = struct.unpack_from("I", info, 8)
    return info[2], pause


def main() -> None:
    """What the test starts."""
    end = connection(*sys.argv[1:])
    tell(connected=True)
    for line in sys.stdin:
        match line.strip():
            case "send":
                end.send(b"x")
                wait_for(lambda: tries_and_pause(end)[0] >= TRIES, "it is sent again")
                tell(pause=tries_and_pause(end)[1])
            case "receive":
                end.settimeout(DEADLINE)
                tell(received=len(end.recv(1)))
            case "close":
                end.close()
                tell(closed=True)


main()
