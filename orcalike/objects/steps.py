"""Methods of several operations, written once for threads and for coroutines.

The body is a generator that yields the calls it wants done: `item = yield from ask(self._take)`.
Called as `obj.method(...)` each call waits in this thread; `await obj.method.aio(...)` awaits each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from types import FrameType
from typing import (
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    TypeAlias,
    TypeVar,
    overload,
)

from orcalike.errors import BlockingInLoop, InvocationTimeout
from orcalike.objects.signatures import BoundDescribed, Described
from orcalike.runtime.awaiting import blocking_method
from orcalike.runtime.operation import BoundOperation

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)
P = ParamSpec("P")
R = TypeVar("R")


class Request(NamedTuple):
    """One call that a body wants done."""

    operation: BoundOperation[..., Any]
    arguments: tuple[Any, ...]


Steps: TypeAlias = Generator[Request, Any, R]


def ask(operation: BoundOperation[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Steps[R]:
    """Have an operation called; `yield from` it for the outcome. Keyword arguments do not travel."""
    assert not kwargs
    outcome: R = yield Request(operation, args)
    return outcome


def ask_within(
    timeout: float | None, operation: BoundOperation[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> Steps[tuple[bool, R | None]]:
    """The same with a limit in seconds, None for none: (whether it ran, the outcome).

    Raises InvocationTimeout if the group does not answer, so that neither is known.
    """
    if timeout is None:
        return True, (yield from ask(operation, *args, **kwargs))
    try:
        return True, (yield from ask(operation.options(timeout=timeout), *args, **kwargs))
    except InvocationTimeout as error:
        if error.outcome != "withdrawn":
            raise
        return False, None


def is_cancellation(error: BaseException) -> bool:
    """Whether a task was cancelled."""
    asyncio = sys.modules.get("asyncio")  # without it there are no tasks
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


class BoundMethod(BoundDescribed, Generic[P, R]):
    """Such a method of one object."""

    __slots__ = ()

    def __init__(self, method: Method[Any, P, R], owner: Any) -> None:
        self._method = method
        self._object = owner

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Go through it in this thread."""
        steps: Steps[R] = self._method.steps(self._object, *args, **kwargs)
        try:
            request = next(steps)
            while True:
                try:
                    outcome = request.operation(*request.arguments)
                except BlockingInLoop:
                    request = steps.throw(self._blocking(sys._getframe(1)))
                except BaseException as error:  # noqa: BLE001 - the body decides
                    request = steps.throw(error)
                else:
                    request = steps.send(outcome)
        except StopIteration as end:
            result: R = end.value
            return result

    def _blocking(self, caller: FrameType) -> BlockingInLoop:
        """What to write in place of this call, in place of what a step of it says."""
        error = blocking_method(self._object, self.__name__, caller)
        error.__suppress_context__ = True
        return error

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same in a coroutine."""
        steps: Steps[R] = self._method.steps(self._object, *args, **kwargs)
        try:
            request = next(steps)
            while True:
                try:
                    outcome = await request.operation.aio(*request.arguments)
                except BaseException as error:  # noqa: BLE001 - the body decides
                    request = steps.throw(error)
                else:
                    request = steps.send(outcome)
        except StopIteration as end:
            result: R = end.value
            return result

    def __repr__(self) -> str:
        return f"<{type(self._object).__name__}.{self.__name__} of {self._object!r}>"


class Method(Described, Generic[S_contra, P, R]):
    """The descriptor that stands in the class; a decorator for the body."""

    def __init__(self, body: Callable[Concatenate[S_contra, P], Steps[R]]) -> None:
        super().__init__(body)
        self.steps = body
        """The body, for another method: `yield from Queue.get.steps(queue)`."""

    @overload
    def __get__(self, obj: None, owner: type[Any] | None = None, /) -> Method[S_contra, P, R]: ...
    @overload
    def __get__(self, obj: S_contra, owner: type[Any] | None = None, /) -> BoundMethod[P, R]: ...
    def __get__(self, obj: Any, owner: type[Any] | None = None, /) -> Any:
        return self if obj is None else BoundMethod(self, obj)

    def __call__(self, obj: S_contra, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Go through it in this thread, with that object."""
        return BoundMethod(self, obj)(*args, **kwargs)

    def lacks(self, name: str) -> str:
        if name not in ("nowait", "options"):
            return super().lacks(name)
        code = self.steps.__code__
        has_limit = "timeout" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        limit = f"; a limit is {self.__name__}(..., timeout=2)" * has_limit
        return f"takes several steps: it has aio, and neither nowait nor options{limit}"
