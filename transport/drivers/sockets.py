"""Addresses and sockets: `unix:PATH` and `tcp:HOST:PORT`, never beyond this machine without a key.

What a socket needs once is here, in Python; what each frame needs is in `channel.pyx`. Beside each
listening socket stands one for datagrams, where its owner's heartbeats come: at `PATH~`, or at the
same host and port by UDP.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import struct
from pathlib import Path

from orcalike.transport.errors import InsecureConfig, JoinFailed, OrcalikeError

BACKLOG = 1024

DATAGRAM_SUFFIX = "~"
"""What the path of a datagram socket has more than that of the listening one."""

UNIX_PATH_MAX = 107 - len(DATAGRAM_SUFFIX)
"""The longest path to listen at, in bytes: the kernel's bound is 108 with the final zero."""

PORT_TRIES = 16


def split(address: str) -> tuple[str, str, int]:
    """(scheme, path or host, port) of an address; raises ValueError if it is none."""
    scheme, _, rest = address.partition(":")
    if scheme == "unix" and rest:
        return scheme, rest, 0
    host, _, port = rest.rpartition(":")
    if scheme == "tcp" and host and port.isdigit() and int(port) < 65536:
        return scheme, host.strip("[]"), int(port)
    raise ValueError(f"{address!r} is not an address: unix:PATH or tcp:HOST:PORT")


def normal(address: str) -> str:
    """The one way to write an address: an absolute path, or a numeric loopback host."""
    scheme, host, port = split(address)
    if scheme == "unix":
        return f"unix:{os.path.abspath(host)}"
    host = _loopback(host)
    return f"tcp:[{host}]:{port}" if ":" in host else f"tcp:{host}:{port}"


def _loopback(host: str) -> str:
    """The host's address, on the loopback interface; raises InsecureConfig for any other."""
    address = "127.0.0.1" if host == "localhost" else host
    try:
        if ipaddress.ip_address(address).is_loopback:
            return address
    except ValueError:
        pass
    raise InsecureConfig(
        f"{host} is not on the loopback interface, and groups do not encrypt: "
        "use unix:PATH or tcp:127.0.0.1:PORT"
    )


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def listen(address: str) -> tuple[socket.socket, str]:
    """A listening socket, and the address that others name it by (port 0 picks one).

    Raises InsecureConfig beyond loopback, OrcalikeError if a socket listens there already or
    the path is too long.
    """
    scheme, host, port = split(normal(address))
    try:
        if scheme == "unix":
            address = f"unix:{host}"
            if len(os.fsencode(host)) > UNIX_PATH_MAX:
                raise OSError(f"its path is longer than {UNIX_PATH_MAX} bytes")
            _remove_stale(host)
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            old = os.umask(0o177)
            try:
                sock.bind(host)
            finally:
                os.umask(old)
        else:
            sock = _bind_tcp(host, port)
            port = sock.getsockname()[1]
            address = f"tcp:[{host}]:{port}" if ":" in host else f"tcp:{host}:{port}"
    except OSError as error:
        raise OrcalikeError(f"cannot listen at {address}: {error.strerror or error}") from None
    ask_for_senders(sock)
    sock.listen(BACKLOG)
    sock.setblocking(False)
    return sock, address


def ask_for_senders(sock: socket.socket) -> None:
    """Have the kernel say which process sends what arrives (`channel.pyx`), on a Unix socket.

    Those that a listening socket accepts inherit it.
    """
    if sock.family == socket.AF_UNIX:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)


def _bind_tcp(host: str, port: int) -> socket.socket:
    """A bound socket; a port that is picked here is free for datagrams too."""
    for tries_left in range(PORT_TRIES, 0, -1):
        sock = socket.socket(_family(host), socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
            if port == 0:
                with socket.socket(sock.family, socket.SOCK_DGRAM) as probe:
                    probe.bind(sock.getsockname())
            return sock
        except OSError:
            sock.close()
            if port != 0 or tries_left == 1:
                raise
    raise AssertionError("the last try returns or raises")


def datagrams_beside(listener: socket.socket) -> socket.socket:
    """The datagram socket that stands beside a listening one; `close_datagrams` removes it.

    Raises OrcalikeError if it cannot be made.
    """
    name = listener.getsockname()
    sock = socket.socket(listener.family, socket.SOCK_DGRAM)
    try:
        if listener.family == socket.AF_UNIX:
            name += DATAGRAM_SUFFIX
            os.fchmod(sock.fileno(), 0o600)  # the file that bind makes gets this mode
            if Path(
                name
            ).is_socket():  # left behind: the process that listens beside it is its only owner
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


def datagram_address(address: str) -> bytes:
    """Where the endpoint at `address` takes datagrams, as the kernel's sockaddr; b"" for nowhere.

    Addresses come from other members: one that cannot be used is nowhere.
    """
    try:
        scheme, host, port = split(address)
        if scheme == "unix":
            path = os.fsencode(host + DATAGRAM_SUFFIX)
            usable = len(path) <= UNIX_PATH_MAX + len(DATAGRAM_SUFFIX) and b"\0" not in path
            return struct.pack("=H", socket.AF_UNIX) + path + b"\0" if usable else b""
        family = _family(_loopback(host))
        packed = socket.inet_pton(family, _loopback(host))
    except (ValueError, OSError, OrcalikeError):
        return b""
    if family == socket.AF_INET6:
        head = struct.pack("=H", family) + struct.pack("!HI", port, 0)
        return head + packed + struct.pack("=I", 0)
    return struct.pack("=H", family) + struct.pack("!H", port) + packed + bytes(8)


def _remove_stale(path: str) -> None:
    """Remove a socket file that no process listens behind any more."""
    if not Path(path).is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)


def connect(address: str) -> socket.socket:
    """A socket that is connected, or is about to be. Raises OSError or JoinFailed."""
    scheme, host, port = split(address)
    if scheme == "unix":
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        ask_for_senders(sock)
        target: str | tuple[str, int] = host
    else:
        host = _loopback(host)
        sock = socket.socket(_family(host), socket.SOCK_STREAM)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        target = (host, port)
    sock.setblocking(False)
    try:
        sock.connect(target)
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
        data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, uid, _ = struct.unpack("3i", data)
        if uid != os.getuid():
            raise PermissionError(f"a process of user {uid}")
        return f"process {pid}"
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return f"host {sock.getpeername()[0]}"


def error_of(sock_fd: int) -> str:
    """Why a connection that was about to be made was not; "" where it was."""
    sock = socket.socket(fileno=os.dup(sock_fd))
    with sock:
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return os.strerror(code) if code else ""


def beside(address: str, incarnation: int) -> str:
    """An address of the same kind, on the same host, for another endpoint to listen at."""
    scheme, host, _ = split(address)
    if scheme == "unix":
        return f"unix:{Path(host).parent / f'{incarnation:016x}'}"
    return f"tcp:[{host}]:0" if ":" in host else f"tcp:{host}:0"
