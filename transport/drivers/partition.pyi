"""Partitions: a process that is cut off from others, for tests and `orcalike chaos`."""

from collections.abc import Iterable

from orcalike.transport.drivers.links import Links

def sever(links: Links, addresses: Iterable[str]) -> None: ...
