"""Sockets: what each needs once; what each frame needs is in `channel.pyx`.

Beside each listening socket stands one for datagrams, where its owner's heartbeats come: at `PATH~`, or
at the same host and port by UDP.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct

from orcalike.transport.drivers.addresses import (
    DATAGRAM_SUFFIX,
    UNIX_PATH_MAX,
    check_open,
    family_of,
    normal,
    split,
    target,
    tcp,
)
from orcalike.transport.errors import JoinFailed, OrcalikeError

BACKLOG = 1024
PORT_TRIES = 16

SYNS = 1
"""How often a connection is asked for once more; Linux 6.5 and later adds 4: it fails after 2 to 7 s of silence, and is tried anew."""

KEEP_ALIVE = {socket.TCP_KEEPIDLE: 600, socket.TCP_KEEPINTVL: 30, socket.TCP_KEEPCNT: 10}
"""Seconds, seconds, and how often: a silent host is lost after a quarter of an hour, as if there were data under way."""

LOST_AFTER_MS = 900_000
"""The same for data under way where the kernel counts no tries, as it then has to be asked to (TCP_USER_TIMEOUT)."""

TCP_RTO_MAX_MS = 44
"""An option of Linux 6.15 and later, which `socket` has no name for."""

SEND_AGAIN_MS = 1000
"""What is not acknowledged is sent again after so long at most, the least that can be asked for.

TCP doubles the time with each try, up to 2 minutes: on a network that loses frames a connection would be silent for long
while heartbeats pass, and after a partition for as long again. Its first guess, too, may be seconds, if a SYN was lost.
"""

PREFIX_OF_SITE = 64
"""Bits of an IPv6 address that one site has: the others it chooses as it likes."""


def listen(address: str, *, beyond: bool = False) -> tuple[socket.socket, str]:
    """A listening socket, and its own address (port 0 picks one).

    Raises InsecureConfig beyond loopback, unless `beyond` says that it may be; OrcalikeError if a
    socket listens there already, the path is too long or another file's; ValueError for no address.
    """
    address = normal(address)
    scheme, host, port = split(address)
    if scheme == "tcp":
        check_open(host, beyond=beyond)
    try:
        if scheme == "unix":
            sock = _bind_unix(host)
        else:
            sock = _bind_tcp(host, port)
            address = tcp(host, sock.getsockname()[1])
    except OSError as error:
        raise OrcalikeError(f"cannot listen at {address}: {error.strerror or error}") from None
    ask_for_senders(sock)
    sock.listen(BACKLOG)
    sock.setblocking(False)
    return sock, address


def _bind_unix(path: str) -> socket.socket:
    if len(os.fsencode(path)) > UNIX_PATH_MAX:
        raise OSError(f"its path is longer than {UNIX_PATH_MAX} bytes")
    _remove_stale(path)
    if os.path.lexists(path) and not _is_socket(path):
        raise OSError("a file that is no socket has this name")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    old = os.umask(0o177)
    try:
        sock.bind(path)
    except FileNotFoundError:
        sock.close()
        raise OSError(f"there is no directory {os.path.dirname(path)}") from None
    except OSError:
        sock.close()
        raise
    finally:
        os.umask(old)
    return sock


def ask_for_senders(sock: socket.socket) -> None:
    """Have the kernel say which process sends what arrives (`channel.pyx`), on a Unix socket.

    Those that a listening socket accepts inherit it.
    """
    if sock.family == socket.AF_UNIX:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)


def _bind_tcp(host: str, port: int) -> socket.socket:
    """A bound socket; a port that is picked here is free for datagrams too."""
    for tries_left in range(PORT_TRIES, 0, -1):
        sock = _inet_socket(host, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
            if port == 0:
                with _inet_socket(host, socket.SOCK_DGRAM) as probe:
                    probe.bind(sock.getsockname())
            return sock
        except OSError:
            sock.close()
            if port != 0 or tries_left == 1:
                raise
    raise AssertionError("the last try returns or raises")


def _inet_socket(host: str, kind: socket.SocketKind) -> socket.socket:
    """A socket to bind to a host: of IPv6 alone, or of IPv4 alone."""
    sock = socket.socket(family_of(host), kind)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return sock


def datagrams_beside(listener: socket.socket) -> socket.socket:
    """The datagram socket that stands beside a listening one; `close_datagrams` removes it.

    Raises OrcalikeError if it cannot be made.
    """
    name = listener.getsockname()
    unix = listener.family == socket.AF_UNIX
    sock = (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        if unix
        else _inet_socket(name[0], socket.SOCK_DGRAM)
    )
    try:
        if unix:
            name += DATAGRAM_SUFFIX
            os.fchmod(sock.fileno(), 0o600)  # the file that bind makes gets this mode
            if _is_socket(
                name
            ):  # left behind: its only owner is the process that listens beside it
                os.unlink(name)
        sock.bind(name)
    except OSError as error:
        sock.close()
        why = error.strerror or error
        raise OrcalikeError(f"no datagram socket for heartbeats at {name}: {why}") from None
    sock.setblocking(False)
    return sock


def close_datagrams(sock: socket.socket) -> None:
    """Close a socket of `datagrams_beside`, and remove its file."""
    name = sock.getsockname()
    sock.close()
    if isinstance(name, str):
        with contextlib.suppress(OSError):  # the launcher has removed it where the run ends
            os.unlink(name)


def _is_socket(path: str) -> bool:
    """Whether a path names the file of a Unix socket."""
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def _remove_stale(path: str) -> None:
    """Remove a socket file that no process listens behind any more."""
    if not _is_socket(path):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)


def connect(address: str, *, beyond: bool = False) -> socket.socket:
    """A socket that is connected, or is about to be. Raises OSError, ValueError or OrcalikeError."""
    scheme, host, port = target(address, beyond=beyond)
    if scheme == "unix":
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        ask_for_senders(sock)
        name: str | tuple[str, int] = host
    else:
        sock = socket.socket(family_of(host), socket.SOCK_STREAM)
        _prepare(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, SYNS)
        name = (host, port)
    sock.setblocking(False)
    try:
        sock.connect(name)
    except BlockingIOError:
        if scheme == "unix":
            sock.close()
            raise JoinFailed(f"{address} has too many connections waiting") from None
    except OSError:
        sock.close()
        raise
    return sock


def accepted(sock: socket.socket) -> str:
    """Prepare a socket that was accepted; returns its source: a process, or an address.

    Raises OSError for one of another user (S7).
    """
    sock.setblocking(False)
    if sock.family == socket.AF_UNIX:
        pid, uid = process_and_user(sock)
        if uid != os.getuid():
            raise PermissionError(f"a process of user {uid}")
        return f"process {pid}"
    _prepare(sock)
    return f"host {_site_of(sock.getpeername()[0])}"


def _prepare(sock: socket.socket) -> None:
    """What both ends of a connection by TCP have: one to a host that is lost does not stay for ever."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE.items():
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    with contextlib.suppress(OSError):  # the kernel is an older one
        sock.setsockopt(socket.IPPROTO_TCP, TCP_RTO_MAX_MS, SEND_AGAIN_MS)
        # Else it would give up after some tries: in a quarter of a minute, and one end that is closed at once.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_AFTER_MS)


def outlast(sock: socket.socket, slow: int) -> None:
    """Have a connection stand for as long as the other end may leave unread what is sent to it: it is expelled after `slow` ns, or a half more."""
    if sock.family == socket.AF_UNIX:
        return
    limit = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    if limit:  # it counts while the other end acknowledges, too, but has no room
        least = min(2 * slow // 1_000_000, (1 << 31) - 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(limit, least))


def process_and_user(sock: socket.socket) -> tuple[int, int]:
    """Of the other end of a Unix socket, as the kernel says: the one that connected, or that made the other end listen."""
    data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", data)
    return pid, uid


def _site_of(host: str) -> str:
    """What connections from a host are counted under: its address, or its network's."""
    import ipaddress  # not at the top: what is on one host has no use for it

    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, PREFIX_OF_SITE), strict=False))


def error_of(sock: socket.socket) -> str:
    """Why a connection that was about to be made was not; "" where it was."""
    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return os.strerror(code) if code else ""
