"""The coroutine of an invocation, which `.aio(...)` returns."""

from collections.abc import Coroutine, Generator
from typing import Any, TypeVar, final

from orcalike.runtime.invocation import Invocation

_R = TypeVar("_R")
_R_co = TypeVar("_R_co", covariant=True)

@final
class InvocationCoroutine(Coroutine[Any, Any, _R_co]):
    """What `.aio(...)` returns: a coroutine that waits for an invocation, which was sent already."""

    __name__: str
    __qualname__: str
    def __init__(self, invocation: Invocation[_R_co]) -> None: ...
    def send(self, value: Any) -> Any: ...
    def throw(self, *error: Any) -> Any: ...
    def close(self) -> None: ...
    def __await__(self) -> Generator[Any, None, _R_co]: ...
    def __next__(self) -> Any: ...

async def within(invocation: Invocation[_R], seconds: float) -> _R: ...
