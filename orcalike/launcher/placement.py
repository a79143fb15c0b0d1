"""On which host each process of a run is, and where it listens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orcalike.launch_protocol.control_lines import Role
from orcalike.launcher.child import Host, Start
from orcalike.transport.record import Record


class Place(Record):
    """Where one process is."""

    node: int
    """Its host's number."""
    slot: int
    """Its place among the ranks of that host."""
    address: str
    """Where it listens."""


class Placement:
    """The places of the ranks, and of the witness (None) if there is one."""

    def __init__(
        self,
        hosts: Sequence[Host] = (),
        places: Mapping[Role, Place] | None = None,
        spare: Mapping[int, list[Place]] | None = None,
    ) -> None:
        """`spare` are places, by host, that no rank has yet."""
        self.hosts = hosts
        self._places = dict(places or {})
        self._spare = dict(spare or {})

    def host(self, role: Role) -> Host:
        """The host of a process."""
        return self.hosts[self._places[role].node]

    def move(self, rank: int) -> bool:
        """Give a rank, whose host is lost, a place on another one; whether there was a spare one."""
        self._spare.pop(self._places[rank].node, None)
        for spare in self._spare.values():
            if spare:
                self._places[rank] = spare.pop(0)
                return True
        return False

    def lose(self, host: Host) -> None:
        """A host is lost: no process is started there any more."""
        for node, each in enumerate(self.hosts):
            if each is host:
                self._spare.pop(node, None)

    def start(self, role: Role, restarts: int = 0, formed: Sequence[str] = ()) -> Start:
        """What its host must know to start it; `formed` are the groups that were made before."""
        place = self._places[role]
        ranks = sorted(rank for rank in self._places if rank is not None)
        first = [None] if None in self._places else []
        beside = sum(self._places[rank].node == place.node for rank in ranks)
        return Start(
            role=role,
            slot=place.slot,
            slots=max(1, beside),
            node=place.node,
            listen=place.address,
            seeds=tuple(self._places[each].address for each in (*first, *ranks)),
            restarts=restarts,
            formed=tuple(formed),
        )
