"""Where other hosts reach this one: what is said, else an interface's address, else what the kernel picks.

The kernel is asked for the way to a host that matters, a seed or a launcher, and for no other: on a host
with several networks there is no default that is right. The host's own name says nothing either: it often
is a loopback address.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from orcalike.transport.drivers.addresses import (
    family_of,
    is_loopback,
    is_wildcard,
    number,
    split,
    tcp,
)

if TYPE_CHECKING:
    import ipaddress

_REQUEST_AND_DUMP = 0x301
_DONE, _ADDRESS, _ASK_FOR_ADDRESSES = 3, 20, 22
_HEADER, _OF_ADDRESS, _ATTRIBUTE = (
    struct.Struct("=IHHII"),
    struct.Struct("=BBBBI"),
    struct.Struct("=HH"),
)
_IFA_ADDRESS, _IFA_LOCAL = 1, 2

Resolve = Callable[[str], Sequence[str]]


def own_host(
    *,
    advertise: str | None = None,
    interface: str | None = None,
    towards: Iterable[str] = (),
    family: int = socket.AF_UNSPEC,
    environ: Mapping[str, str] = os.environ,
) -> str:
    """The host, a number, at which others reach this process.

    It is `advertise` or `ORCALIKE_ADVERTISE`; else the address of `interface` or `ORCALIKE_INTERFACE`, a
    name or a network such as 10.0.0.0/8; else the one from which this host would send to the first of
    the hosts `towards`, numbers, that there is a way to. Nothing is sent. `family` is AF_INET or
    AF_INET6 if only such a host can be used.

    Raises ValueError if what is said makes no sense, OSError if there is no way to any of them.
    """
    said, port = split_advertised(advertise or environ.get("ORCALIKE_ADVERTISE", ""))
    if port and not advertise:
        raise ValueError(
            f"ORCALIKE_ADVERTISE={environ['ORCALIKE_ADVERTISE']} names a port, and each process of this "
            f"job has one of its own: ORCALIKE_ADVERTISE={said}"
        )
    if said:
        return said
    named = interface or environ.get("ORCALIKE_INTERFACE", "")
    if named:
        return host_of_interface(named, family)
    return source_towards(each for each in towards if family in (socket.AF_UNSPEC, family_of(each)))


def split_advertised(text: str) -> tuple[str, int]:
    """(host, port) of `HOST` or `HOST:PORT`, the host a number; 0 for no port. ValueError for others."""
    if not text:
        return "", 0
    host, port = text, 0
    try:
        if text.startswith("[") and text.endswith("]"):
            host = text[1:-1]
        elif text.startswith("[") or text.count(":") == 1:
            _, host, port = split(f"tcp:{text}")
        host = number(host)
    except ValueError:
        host = ""
    if not host or is_wildcard(host):
        raise ValueError(
            f"advertise={text!r}: the address at which others reach this process, a number such as "
            "10.0.0.5, 10.0.0.5:7471 or [fd00::5]:7471"
        )
    return host, port


def source_towards(hosts: Iterable[str]) -> str:
    """The address from which this host sends to the first of these that there is a way to."""
    trouble: OSError | None = None
    for host in hosts:
        with socket.socket(family_of(host), socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((host, 9))  # a route is looked up, and nothing is sent
                return number(probe.getsockname()[0])
            except OSError as error:
                trouble = OSError(error.errno, f"no way to {host}: {error.strerror}")
    raise trouble or OSError(errno.EDESTADDRREQ, "no host is known to which it could be reached")


def host_of_interface(interface: str, family: int = socket.AF_UNSPEC) -> str:
    """An address of the interface of that name, or in that network; raises ValueError if there is none.

    IPv4 goes before IPv6 if `family` does not say which.
    """
    import ipaddress  # not at the top: what is on one host has no use for it

    network = _network_of(interface)
    there = [
        (name, host)
        for name, host in sorted(own_addresses(), key=lambda each: ":" in each[1])
        if family in (socket.AF_UNSPEC, family_of(host))
    ]
    for name, host in there:
        if name == interface if network is None else ipaddress.ip_address(host) in network:
            return host
    listed = ", ".join(f"{name} ({host})" for name, host in there) or "none"
    raise ValueError(
        f"interface {interface!r}: this host has no such one with an address; it has {listed}"
    )


def _network_of(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    import ipaddress  # not at the top: what is on one host has no use for it

    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def own_addresses() -> list[tuple[str, str]]:
    """(name of the interface, host) of all addresses of this host, but those that need a zone."""
    found = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.bind((0, 0))
        asked = _OF_ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        size = _HEADER.size + len(asked)
        kernel.send(_HEADER.pack(size, _ASK_FOR_ADDRESSES, _REQUEST_AND_DUMP, 1, 0) + asked)
        for body in _answers(kernel):
            index, packed = _address_in(body)
            try:
                name, host = socket.if_indextoname(index), number(packed)
            except (OSError, ValueError):  # it is gone already, or link-local
                continue
            found.append((name, host))
    return found


def _answers(kernel: socket.socket) -> Iterator[bytes]:
    """The bodies of the messages of a dump."""
    while True:
        data = kernel.recv(1 << 16)
        while data:
            size, kind, *_ = _HEADER.unpack_from(data)
            if kind == _ADDRESS:
                yield data[_HEADER.size : size]
            elif kind == _DONE:
                return
            else:
                raise OSError(
                    errno.EIO, f"the kernel answers {kind} where its addresses were asked for"
                )
            data = data[(size + 3) & ~3 :]


def _address_in(body: bytes) -> tuple[int, str]:
    """(index of the interface, host) of a message about an address."""
    family, _, _, _, index = _OF_ADDRESS.unpack_from(body)
    values, at = {}, _OF_ADDRESS.size
    while at + _ATTRIBUTE.size <= len(body):
        size, kind = _ATTRIBUTE.unpack_from(body, at)
        values[kind] = body[at + _ATTRIBUTE.size : at + size]
        at += max((size + 3) & ~3, _ATTRIBUTE.size)
    packed = values.get(_IFA_LOCAL) or values.get(_IFA_ADDRESS, b"")
    return index, socket.inet_ntop(family, packed) if packed else ""


def places(
    listen: str,
    seeds: Sequence[str],
    advertise: str | None,
    interface: str | None,
    resolve: Resolve,
    environ: Mapping[str, str] = os.environ,
) -> tuple[str, str]:
    """(where this process listens by TCP, where others reach it): `tcp:HOST:PORT`, port 0 for any.

    Without `listen` it joins through `seeds`, and listens at its own host. `resolve(host)` gives the
    numbers of a host. Raises ValueError for what contradicts itself, OSError if a name is not known, or
    there is no way to a seed.
    """
    said, said_port = split_advertised(advertise or "")
    if interface:
        host_of_interface(interface)  # an error if there is no such one
    if interface and said and _is_own(said):
        _check_interface(interface, said, f"advertise={advertise!r}")

    def hosts() -> Iterator[str]:
        for seed in seeds:
            yield from resolve(split(seed)[1])

    host = port = None
    if listen:
        _, name, port = split(listen)
        host = resolve(name)[0]
        if interface and not is_wildcard(host):
            _check_interface(interface, host, f"listen={listen!r}")
    if not advertise and (host is None or is_wildcard(host)):
        said, said_port = split_advertised(environ.get("ORCALIKE_ADVERTISE", ""))
    reached = said
    if host is None or port is None:
        port = said_port
        if said and _is_own(said):
            host = said
        else:
            family = family_of(said) if said else socket.AF_UNSPEC
            unsaid = {**environ, "ORCALIKE_ADVERTISE": ""}
            host = own_host(interface=interface, towards=hosts(), family=family, environ=unsaid)
    elif not said and is_wildcard(host):
        reached = _behind_wildcard(listen, host, interface, hosts(), environ)
    reached = reached or host
    if family_of(host) != family_of(reached):
        raise ValueError(f"it listens at {host} and is to be reached at {reached}: one is IPv6")
    return tcp(host, port), tcp(reached, said_port)


def beside(address: str, interface: str | None) -> dict[str, str | None]:
    """The arguments of `join` for another process of this host, reached where `address` is, at a port of its own.

    `interface` is what the member has been given that is at this address.
    """
    if not address.startswith("tcp:"):
        return {}
    _, host, _ = split(address)
    return {"advertise": host, "interface": None if _is_own(host) else interface}


def _is_own(host: str) -> bool:
    """Whether one can listen here at this host, a number."""
    return is_loopback(host) or any(host == own for _, own in own_addresses())


def _check_interface(interface: str, host: str, said: str) -> None:
    """Raise ValueError if `host`, which `said` says, is not an address of the interface."""
    import ipaddress  # not at the top: what is on one host has no use for it

    network = _network_of(interface)
    if network is not None:
        if ipaddress.ip_address(host) in network:
            return
    else:
        own = [each for name, each in own_addresses() if name == interface]
        if host in own or (is_loopback(host) and any(map(is_loopback, own))):
            return
    raise ValueError(
        f"interface {interface!r} has not the address {host} of {said}: give an address of the "
        f"interface there, such as {host_of_interface(interface)}, or leave interface out"
    )


def _behind_wildcard(
    listen: str,
    host: str,
    interface: str | None,
    towards: Iterable[str],
    environ: Mapping[str, str],
) -> str:
    """The host at which one is reached that listens at all interfaces."""
    try:
        return own_host(
            interface=interface, towards=towards, family=family_of(host), environ=environ
        )
    except OSError as error:
        if error.errno != errno.EDESTADDRREQ:
            raise
    raise ValueError(
        f"listen={listen!r} is every address of this host: say at which one others reach it, with "
        "advertise= or ORCALIKE_ADVERTISE, or interface= or ORCALIKE_INTERFACE"
    )
