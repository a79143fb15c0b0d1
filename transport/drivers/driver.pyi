from collections.abc import Callable
from typing import TypeVarTuple

_Given = TypeVarTuple("_Given")

class Waitable:
    """Something that a thread can wait for."""

    def finish(self) -> None: ...

class Driver:
    """What an application above a stack may ask of the driver that serves it."""

    def call(self, function: Callable[[*_Given, int], object], *args: *_Given) -> None: ...

def clock() -> int: ...
