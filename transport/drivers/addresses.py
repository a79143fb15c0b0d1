"""Addresses as text: `unix:PATH` and `tcp:HOST:PORT`, what they say, and which may be used (S1).

A host is a number wherever an address travels: names are resolved by processes that join, before
(`orcalike.session.names`). There is one way to write each address, so that two can be compared. What is
beyond the loopback interface is used under a key only.
"""

from __future__ import annotations

import os
import re
import socket
import struct

from orcalike.transport.errors import InsecureConfig, OrcalikeError

DATAGRAM_SUFFIX = "~"
"""What the path of a datagram socket has more than that of the listening one."""

UNIX_PATH_MAX = 107 - len(DATAGRAM_SUFFIX)
"""The longest path to listen at, in bytes: the kernel's bound is 108 with the final zero."""

NAME_MAX = 253
"""Characters of a host's name."""

_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")


def split(address: str) -> tuple[str, str, int]:
    """(scheme, path or host, port) of an address; raises ValueError if it is none."""
    scheme, _, rest = address.partition(":") if isinstance(address, str) else ("", "", "")
    if scheme == "unix" and rest:
        return scheme, rest, 0
    host, _, port = rest.rpartition(":")
    if scheme == "tcp" and host:
        if not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise ValueError(f"{address!r}: a port is a number from 0 to 65535")
        if host.startswith("[") and host.endswith("]"):
            return scheme, host[1:-1], int(port)
        if ":" not in host:
            return scheme, host, int(port)
        raise ValueError(f"{address!r}: an IPv6 address stands in brackets, tcp:[{host}]:{port}")
    raise ValueError(f"{address!r} is not an address: unix:PATH or tcp:HOST:PORT")


def tcp(host: str, port: int) -> str:
    """The address of a host, which is a number or a name."""
    return f"tcp:[{host}]:{port}" if ":" in host else f"tcp:{host}:{port}"


def is_name(host: str) -> bool:
    """Whether it is to be resolved: a name, and no number."""
    labels = host.removesuffix(".").split(".")
    # As resolvers do: what ends in a number is none (RFC 3696), or a number that is written wrong.
    wellformed = len(host) <= NAME_MAX and all(map(_LABEL.fullmatch, labels))
    return wellformed and not re.fullmatch(r"\d+|0[xX][0-9a-fA-F]*", labels[-1])


def number(host: str) -> str:
    """The one way to write a host that is a number; raises ValueError if it can be no process's."""
    import ipaddress  # not at the top: what is on one host has no use for it

    if host == "localhost":
        return "127.0.0.1"
    if "%" in host:
        raise ValueError(
            f"{host}: a zone means something on this host only; use an address that is not link-local"
        )
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        raise ValueError(f"{host!r} is no host: a number such as 10.0.0.5 or fd00::5") from None
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        elif found.is_link_local:
            raise ValueError(
                f"{host} is link-local: use an address that other hosts can tell apart"
            )
    if found.is_multicast or found == ipaddress.ip_address("255.255.255.255"):
        raise ValueError(f"{host} is no host's: it means many")
    return str(found)


def normal(address: str, *, names: bool = False) -> str:
    """The one way to write an address: an absolute path, or a host as a number.

    A host's name stays as it is where `names` says so. Raises ValueError.
    """
    scheme, host, port = split(address)
    if scheme == "unix":
        return f"unix:{os.path.abspath(host)}"
    if host != "localhost" and is_name(host):
        if not names:
            raise ValueError(f"{address!r}: the host must be a number here, such as 10.0.0.5")
        return tcp(host, port)
    try:
        return tcp(number(host), port)
    except ValueError as error:
        raise ValueError(f"{address!r}: {error}") from None


def is_wildcard(host: str) -> bool:
    """Whether it means all interfaces of this host."""
    return host in ("0.0.0.0", "::")


def is_loopback(host: str) -> bool:
    """Whether a host, a number, is this one whichever it is."""
    import ipaddress  # not at the top: what is on one host has no use for it

    return ipaddress.ip_address(host).is_loopback


def check_open(host: str, *, beyond: bool) -> None:
    """Raise InsecureConfig for a host beyond the loopback interface, unless that may be used."""
    if not beyond and not is_loopback(host):
        raise InsecureConfig(
            f"{host} is not on the loopback interface, and there is no key: make one with "
            "`orcalike keygen`, or give key=PATH"
        )


def target(address: str, *, beyond: bool = False) -> tuple[str, str, int]:
    """(scheme, path or host, port) of an address to connect to; it may be another member's word.

    Raises ValueError for what no process can listen at, InsecureConfig beyond loopback unless
    `beyond` says that it may be.
    """
    scheme, host, port = split(address)
    if scheme == "unix":
        return scheme, host, port
    host = number(host)
    if is_wildcard(host) or not port:
        raise ValueError(f"{address!r} is for listening: no process is reached there")
    check_open(host, beyond=beyond)
    return scheme, host, port


def family_of(host: str) -> socket.AddressFamily:
    """That of a host, which is a number."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def datagram_address(address: str, *, beyond: bool = False) -> bytes:
    """Where the endpoint at `address` takes datagrams, as the kernel's sockaddr; b"" for nowhere.

    Addresses come from other members: one that cannot be used is nowhere.
    """
    try:
        scheme, host, port = target(address, beyond=beyond)
        if scheme == "unix":
            path = os.fsencode(host + DATAGRAM_SUFFIX)
            usable = len(path) <= UNIX_PATH_MAX + len(DATAGRAM_SUFFIX) and b"\0" not in path
            return struct.pack("=H", socket.AF_UNIX) + path + b"\0" if usable else b""
    except (ValueError, OrcalikeError):
        return b""
    family = family_of(host)
    packed = socket.inet_pton(family, host)
    if family == socket.AF_INET6:
        head = struct.pack("=H", family) + struct.pack("!HI", port, 0)
        return head + packed + struct.pack("=I", 0)
    return struct.pack("=H", family) + struct.pack("!H", port) + packed + bytes(8)
