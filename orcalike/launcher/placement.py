"""On which host each process of a run is, and where it listens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orcalike.launch_protocol.control_lines import Role
from orcalike.launcher.child import Host, Start


@dataclass(frozen=True, slots=True)
class Place:
    """Where one process is."""

    node: int
    """Its host's number."""
    slot: int
    """Its place among the ranks of that host."""
    address: str
    """Where it listens."""


class Placement:
    """The places of the ranks, and of the witness (None) if there is one."""

    def __init__(self, hosts: Sequence[Host], places: dict[Role, Place]) -> None:
        self.hosts = hosts
        self._places = places

    def host(self, role: Role) -> Host:
        """The host of a process."""
        return self.hosts[self._places[role].node]

    def start(self, role: Role, restarts: int = 0, formed: Sequence[str] = ()) -> Start:
        """What its host must know to start it; `formed` are the groups that were made before."""
        place = self._places[role]
        ranks = sorted(rank for rank in self._places if rank is not None)
        first = [None] if None in self._places else []
        beside = sum(self._places[rank].node == place.node for rank in ranks)
        return Start(
            role=role,
            slot=place.slot,
            slots=beside,
            node=place.node,
            listen=place.address,
            seeds=tuple(self._places[each].address for each in (*first, *ranks)),
            restarts=restarts,
            formed=tuple(formed),
        )
