from typing import Self

from orcalike.transport.stack import Stack

class Channel:
    """One connected stream socket, cut into frames; the caller closes the descriptor."""

    stack: Stack | None
    address: str
    connecting: bool
    waits_for_room: bool
    def __new__(cls, fd: int, process: int = -1, files: int = -1) -> Self: ...
    @property
    def fd(self) -> int: ...
    @property
    def link(self) -> int: ...
    @property
    def why(self) -> str | None: ...
    @property
    def process(self) -> int: ...
    @property
    def files(self) -> int: ...
    @property
    def queued(self) -> int: ...
