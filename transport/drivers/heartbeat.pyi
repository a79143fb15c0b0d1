import socket
from collections.abc import Iterable

from orcalike.transport.view import Member

class Heartbeat:
    """The beats of one process: its sockets, its thread, and the heartbeat peers of its stacks."""

    @property
    def counts(self) -> dict[str, int]: ...
    def listen(self, sock: socket.socket) -> None: ...
    def beat(
        self,
        incarnation: int,
        group: str,
        period: int,
        members: Iterable[Member],
        lease: int = 0,
        window: int = 0,
        cut: Iterable[Member] = (),
        unleased: Iterable[Member] = (),
    ) -> list[tuple[int, int]]: ...
    def leased(self, incarnation: int, other: int) -> tuple[int, int]: ...
    def answer(self, incarnation: int, group: str) -> None: ...
    def excuses(self, incarnation: int) -> list[tuple[int, int]]: ...
    def heard(self, incarnation: int) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...
