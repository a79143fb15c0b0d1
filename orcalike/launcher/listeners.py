"""Sockets that the processes of a run listen on, made before they run."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def listen(address: str, backlog: int) -> socket.socket:
    """A socket that listens at `unix:PATH`, or at a port that `bind_tcp` keeps.

    Raises OSError if the system has no room for it.
    """
    scheme, _, place = address.partition(":")
    if scheme == "unix":
        Path(place).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        # Of those that connect before the witness runs the kernel says which process it is, too.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        os.fchmod(listener.fileno(), 0o600)  # the file that bind makes gets this mode
        listener.bind(place)
    else:
        host, _, port = place.rpartition(":")
        listener = bind_tcp(host.strip("[]"), int(port))
    listener.listen(backlog)
    return listener


def bind_tcp(host: str, port: int) -> socket.socket:
    """A socket bound to a port of this host, any with 0; it does not listen yet.

    While none of them listens several can be bound to the same port: so one keeps it for another.
    Raises OSError if `host`, a number, is none of this host's addresses.
    """
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def tcp_address(bound: socket.socket) -> str:
    """Where that socket is bound."""
    host, port, *_ = bound.getsockname()
    return f"tcp:[{host}]:{port}" if ":" in host else f"tcp:{host}:{port}"
