"""The near road: members of a TCP group that share memory, on one host, connect by a Unix socket.

Beside each listening TCP socket stands a Unix one in the abstract namespace, which leaves no file and is of one
network namespace. Its name has the address at which others reach the TCP socket. A connection there is as one by
TCP, with the same handshake under the key of the group; and each end passes its process, as on any Unix socket
(`channel.pyx`), so that its death is certain and its memory can be mapped.

A name is free to any process. The end that connects asks the kernel which user listens there, the end that accepts
which one connects, and whatever is in the way, a connection is made by TCP.

A connection may be made by TCP all the same: by another address of the peer's, such as a seed's, or too early. A launcher
may make a TCP socket before the process runs that listens there: connections wait in it, and no Unix socket stands
beside it yet. So the end that has connected looks for the near road again when the peer has said something: when the
handshake is over, before any stack knows of the connection, and when it has greeted, and said at which address others
reach it. Then the connection is made anew, before COM has sent anything by it but its own greeting.
"""

from __future__ import annotations

import contextlib
import os
import socket

from orcalike.transport.drivers import sockets
from orcalike.transport.drivers.addresses import normal, target
from orcalike.transport.errors import ProtocolError
from orcalike.transport.layers.com import greeting_of
from orcalike.transport.stack import Stack
from orcalike.transport.view import share_host


def name_of(address: str) -> str:
    """What the Unix socket is bound to that stands beside the TCP socket at an address, as `normal` writes that."""
    return f"\0orcalike {address}"


def listen(address: str) -> socket.socket | None:
    """A listening socket of the near road to the endpoint that others reach at `address`.

    None if that is no TCP address, or if the name cannot be bound. Raises ValueError for no address.
    """
    address = normal(address)
    if not address.startswith("tcp:"):
        return None
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(name_of(address))
        sock.listen(sockets.BACKLOG)
    except OSError:
        sock.close()
        return None
    return sock


def takes_key(listener: socket.socket) -> bool:
    """Whether connections to a listening socket are under the key of the group: by TCP, and by the near road."""
    return listener.family != socket.AF_UNIX or isinstance(listener.getsockname(), bytes)


def connect(stack: Stack, address: str, *, beyond: bool = False) -> socket.socket:
    """A socket that is connected, or is about to be: by the near road if there is one, or as `sockets.connect` does it.

    Raises what that does.
    """
    target(address, beyond=beyond)
    sock = reach(stack, address)
    return sockets.connect(address, beyond=beyond) if sock is None else sock


def reach(stack: Stack, address: str) -> socket.socket | None:
    """A socket that is connected by the near road; None if there is none, or the stack shares no memory.

    Raises ValueError for no address.
    """
    there = normal(address)
    is_near = there.startswith("tcp:") and share_host(stack.me.address, there)
    return _connect(name_of(there)) if is_near and stack.alarm is not None else None


def reach_after(connected: socket.socket, stack: Stack, address: str) -> socket.socket | None:
    """The same when the process there has answered; None if that was on a Unix socket, or the address is none."""
    try:
        return reach(stack, address) if connected.family != socket.AF_UNIX else None
    except ValueError:
        return None


def address_in(greeting: bytes) -> str:
    """At which address others reach the peer that greets; "" if it does not say."""
    try:
        return greeting_of(greeting)[1]
    except ProtocolError:
        return ""


def _connect(name: str) -> socket.socket | None:
    """A socket that is connected to one of this user's; None if there is none, or others wait there already."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        sock = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        sock.setblocking(False)
        sockets.ask_for_senders(sock)
        sock.connect(name)
        _, user = sockets.process_and_user(sock)
        if user == os.getuid():
            opened.pop_all()
            return sock
    return None
