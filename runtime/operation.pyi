"""The types of what a decorated method becomes: descriptors, bound operations, invocations.

They carry an operation's own parameters and result to its three ways of being called, so that a
type checker needs no plugin. The class that has the operation (`_S_co`) is covariant: a subclass
overrides an operation as it overrides a method, and is as right or wrong in doing so.
"""

from collections.abc import Callable
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, final, overload

from orcalike.runtime.classes import ClassInfo
from orcalike.runtime.durations import Duration
from orcalike.runtime.invocation import Invocation
from orcalike.runtime.invocation_coroutine import InvocationCoroutine
from orcalike.transport.degree import Resilience

_S_co = TypeVar("_S_co", covariant=True)
_P = ParamSpec("_P")
_R_co = TypeVar("_R_co", covariant=True)

@final
class BoundOperation(Generic[_P, _R_co]):
    """An operation of one object: call it, await its `aio`, or do not wait with `nowait`."""

    __name__: str
    __qualname__: str
    @property
    def __wrapped__(self) -> Callable[_P, _R_co]: ...
    @property
    def __self__(self) -> Any: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...
    def aio(self, *args: _P.args, **kwargs: _P.kwargs) -> InvocationCoroutine[_R_co]: ...
    def nowait(self, *args: _P.args, **kwargs: _P.kwargs) -> Invocation[_R_co]: ...
    def options(
        self, *, timeout: Duration | None = None, stable: int | None = None
    ) -> BoundOperation[_P, _R_co]: ...

@final
class Operation(Generic[_S_co, _P, _R_co]):
    """A method declared `@read` or `@write`: the descriptor that stands in the class."""

    function: Any  # a FunctionType, which a type checker would bind to the operation
    guard: Any  # a FunctionType or None
    name: str
    kind: Literal["read", "write"]
    popup: bool
    undo: bool
    resilience: Resilience | None
    degree: int
    index: int
    info: ClassInfo | None
    title: str
    inline: Operation[_S_co, _P, _R_co] | None
    """Of one that runs in pop-up threads for a while: what it is else."""
    __name__: str
    __qualname__: str
    __wrapped__: Any
    __isabstractmethod__: bool
    def __init__(
        self,
        function: Callable[Concatenate[_S_co, _P], _R_co],
        kind: Literal["read", "write"],
        popup: bool = False,
        undo: bool = False,
        resilience: Resilience | None = None,
    ) -> None: ...
    @overload
    def when(
        self, guard: Callable[Concatenate[_S_co, _P], bool], /
    ) -> Callable[Concatenate[_S_co, _P], bool]: ...
    @overload
    def when(
        self, guard: None = None, /
    ) -> Callable[
        [Callable[Concatenate[_S_co, _P], bool]], Callable[Concatenate[_S_co, _P], bool]
    ]: ...
    def as_popup(self) -> Operation[_S_co, _P, _R_co]: ...
    def look_at_invariants(self) -> None: ...
    @overload
    def __get__(
        self, obj: None, owner: type[Any] | None = None, /
    ) -> Operation[_S_co, _P, _R_co]: ...
    @overload
    def __get__(
        self,
        obj: _S_co,  # type: ignore[misc]
        owner: type[Any] | None = None,
        /,
    ) -> BoundOperation[_P, _R_co]: ...
    def __call__(self, obj: _S_co, /, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...  # type: ignore[misc]

def post(bound: BoundOperation[..., Any], *args: Any) -> None: ...
