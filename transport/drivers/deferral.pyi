import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Concatenate, ParamSpec, TypeVar

_P = ParamSpec("_P")
_S = TypeVar("_S")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any])

class OwnThread(threading.Thread):
    """A thread of orcalike's own, a daemon, which the kernel gives no signals to."""

    function: Callable[[], object]
    def __init__(self, function: Callable[[], object], name: str) -> None: ...
    def run(self) -> None: ...

class Deferring:
    """What Python has as a signal's handler, for the program's own: it waits for the core."""

    handler: Callable[[int, FrameType | None], Any]
    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None: ...
    def __call__(self, number: int, frame: FrameType | None) -> Any: ...

def held(function: _F) -> _F: ...
def held_or_undone(
    undo: Callable[[_S, _R], object],
) -> Callable[[Callable[Concatenate[_S, _P], _R]], Callable[Concatenate[_S, _P], _R]]: ...
def set_handler(number: int, handler: Callable[[int, FrameType | None], Any]) -> None: ...
def insist(number: int, which: int) -> None: ...
def call_on_main(function: Callable[[], object]) -> None: ...
