"""Connections that wait for a pump, and the word that there are deadlines, for which there always is room."""

from __future__ import annotations

import socket

from orcalike.transport.drivers import handed_over
from orcalike.transport.drivers.handed_over import HANDED_OVER_MAX, Connection


def test_so_many_connections_wait_and_no_more() -> None:
    waiting: list[Connection | None] = []
    ours, theirs = socket.socketpair()
    with theirs:
        for _ in range(HANDED_OVER_MAX):
            assert handed_over.put(waiting, (None, ours, b""))
        assert not handed_over.put(waiting, (None, ours, b""))
        assert len(waiting) == HANDED_OVER_MAX
        handed_over.close_all(waiting)
        assert waiting == []
        assert theirs.recv(1) == b"", "it is closed"


def test_deadlines_are_looked_at_however_many_wait() -> None:
    """Else those that are silent would keep their places; one word of it is enough."""
    connection: Connection = (None, socket.socket(), b"")
    waiting: list[Connection | None] = [connection] * HANDED_OVER_MAX
    for _ in range(2):
        assert handed_over.put(waiting, None)
    assert waiting == [connection] * HANDED_OVER_MAX + [None]
    handed_over.close_all(waiting)
