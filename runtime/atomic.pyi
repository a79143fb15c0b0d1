"""The types of what `@atomic` makes of a function of a module."""

from collections.abc import Callable
from types import FunctionType
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

from orcalike.runtime.classes import AtomicInfo
from orcalike.runtime.durations import Duration
from orcalike.runtime.invocation import Invocation
from orcalike.runtime.invocation_coroutine import InvocationCoroutine
from orcalike.runtime.operation import BoundOperation
from orcalike.transport.degree import Resilience

_P = ParamSpec("_P")
_R_co = TypeVar("_R_co", covariant=True)

class Atomic(Generic[_P, _R_co]):
    """A function declared `@atomic`: one message for operations on several objects."""

    function: Any  # a FunctionType, which a type checker would bind to the operation
    guard: Any  # a FunctionType or None
    name: str
    kind: Literal["atomic"]
    undo: bool
    resilience: Resilience | None
    degree: int
    title: str
    info: AtomicInfo | None
    guard_declared: Callable[[FunctionType], None] | None
    """Called by `when` with the guard before it is set; what it raises, `when` raises."""
    __name__: str
    __qualname__: str
    __wrapped__: Any
    def __init__(
        self,
        function: Callable[_P, _R_co],
        undo: bool = False,
        resilience: Resilience | None = None,
    ) -> None: ...
    @overload
    def when(self, guard: Callable[_P, bool], /) -> Callable[_P, bool]: ...
    @overload
    def when(self, guard: None = None, /) -> Callable[[Callable[_P, bool]], Callable[_P, bool]]: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...
    def aio(self, *args: _P.args, **kwargs: _P.kwargs) -> InvocationCoroutine[_R_co]: ...
    def nowait(self, *args: _P.args, **kwargs: _P.kwargs) -> Invocation[_R_co]: ...
    def options(
        self, *, timeout: Duration | None = None, stable: int | None = None
    ) -> BoundOperation[_P, _R_co]: ...
