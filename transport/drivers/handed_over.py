"""Connections that a listener has accepted and read the greetings of, for a pump that has not taken them yet.

A pump whose event loop is blocked takes none, while those of other groups go on accepting. So their number is bounded.
They are in a list, which the pump looks at after each input.
"""

from __future__ import annotations

import socket

HANDED_OVER_MAX = 256
"""Connections that wait for one pump."""

Connection = tuple[object, socket.socket, bytes]
"""(channel, socket, greeting)."""


def put(waiting: list[Connection | None], connection: Connection | None) -> bool:
    """Have one more wait, or None: there are deadlines to look at. Returns whether there is room for it."""
    if connection is None and None in waiting:
        return True
    if connection is not None and len(waiting) >= HANDED_OVER_MAX:
        return False
    waiting.append(connection)
    return True


def close_all(waiting: list[Connection | None]) -> None:
    """Close all that wait."""
    while waiting:
        connection = waiting.pop()
        if connection is not None:
            connection[1].close()
