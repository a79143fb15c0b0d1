from collections.abc import Iterable, Iterator
from typing import final

from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message

@final
class KeptState:
    whole: bool
    asked: bool
    size: int
    giver: int | None
    wanted: int
    def pieces(self) -> Iterator[tuple[bool, bytes]]: ...
    def given_bytes(self) -> int: ...

def events(
    pieces: Iterable[bytes],
) -> Iterator[tuple[View, bytes] | tuple[Message, tuple[Member, ...]]]: ...
