"""Addresses and sockets: `unix:PATH` and `tcp:HOST:PORT`, never beyond this machine without a key.

What a socket needs once is here, in Python; what each frame needs is in `channel.pyx`.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from pathlib import Path

from orcalike.transport.errors import InsecureConfig, JoinFailed, OrcalikeError

BACKLOG = 1024


def split(address: str) -> tuple[str, str, int]:
    """(scheme, path or host, port) of an address; raises ValueError where it is none."""
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
        f"{host} is not on the loopback interface, and groups have no key yet: "
        "use unix:PATH or tcp:127.0.0.1:PORT"
    )


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def listen(address: str) -> tuple[socket.socket, str]:
    """A listening socket, and the address that others name it by (port 0 picks one).

    Raises InsecureConfig beyond loopback, OrcalikeError where somebody listens there already.
    """
    scheme, host, port = split(normal(address))
    try:
        if scheme == "unix":
            address = f"unix:{host}"
            _remove_stale(host)
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            old = os.umask(0o177)
            try:
                sock.bind(host)
            finally:
                os.umask(old)
        else:
            sock = socket.socket(_family(host), socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            port = sock.getsockname()[1]
            address = f"tcp:[{host}]:{port}" if ":" in host else f"tcp:{host}:{port}"
    except OSError as error:
        raise OrcalikeError(f"cannot listen at {address}: {error.strerror or error}") from None
    sock.listen(BACKLOG)
    sock.setblocking(False)
    return sock, address


def _remove_stale(path: str) -> None:
    """Remove a socket file that nobody listens behind any more."""
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


def accepted(sock: socket.socket) -> None:
    """Prepare a socket that was accepted; raises OSError for one of another user (S7)."""
    sock.setblocking(False)
    if sock.family == socket.AF_UNIX:
        data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, uid, _ = struct.unpack("3i", data)
        if uid != os.getuid():
            raise PermissionError(f"a process of user {uid}")
    else:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


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
