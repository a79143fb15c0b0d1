"""Names of hosts are looked up at each try, by the process that joins: what they stand for can change.

The system's resolver can take long, and knows no deadline, so it has a thread of its own. What is on the
wire is always a number.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Generic, TypeVar

from orcalike.transport.drivers.addresses import is_name, number, split, tcp
from orcalike.transport.drivers.deferral import OwnThread

_T = TypeVar("_T")


def hosts_of(host: str) -> tuple[str, ...]:
    """The numbers that a host has now, the best first; it takes long if it is a name.

    Raises OSError if none is known.
    """
    if host == "localhost" or not is_name(host):
        return (number(host),)
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise OSError(f"the name {host} is not known: {why}") from None
    hosts = []
    for _, _, _, _, (each, *_) in found:
        try:
            hosts.append(number(str(each)))
        except ValueError:  # it needs a zone
            continue
    if not hosts:
        raise OSError(f"the name {host} has no address that can be used")
    return tuple(dict.fromkeys(hosts))


def has_name(address: str) -> bool:
    """Whether an address has a name for its host."""
    scheme, host, _ = split(address)
    return scheme == "tcp" and host != "localhost" and is_name(host)


def numeric(address: str) -> tuple[str, ...]:
    """The same address with its host's numbers; raises as `hosts_of` does."""
    scheme, host, port = split(address)
    if scheme != "tcp":
        return (address,)
    return tuple(tcp(each, port) for each in hosts_of(host))


class Lookup(Generic[_T]):
    """What a function gives or raises that takes long; `done()` is called then, on its own thread."""

    def __init__(self, function: Callable[[], _T], done: Callable[[], None]) -> None:
        self._found: list[_T] = []
        self._error: Exception | None = None
        self._function = function
        self._done = done
        OwnThread(self._run, "orcalike-names").start()

    def _run(self) -> None:
        try:
            self._found.append(self._function())
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            self._error = error
        self._done()

    @property
    def is_over(self) -> bool:
        """Whether it has come to its end."""
        return bool(self._found) or self._error is not None

    def result(self) -> _T:
        """What it gave; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._found[0]
