"""Methods of several operations, written once for threads and for coroutines.

The body is a generator that yields the calls it wants done: `item = yield from ask(self._take)`.
Called as `obj.method(...)` each call waits in this thread; `await obj.method.aio(...)` awaits each.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeAlias, TypeVar, overload

from orcalike.errors import InvocationTimeout, OrcalikeError, WindowFull
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


_given_up: set[Any] = set()
"""Tasks that wait for room: an event loop keeps none of its own."""


def give_up(abandon: BoundOperation[P, None], /, *attempt: P.args, **kwargs: P.kwargs) -> None:
    """Have an attempt undone whose caller was interrupted; it is ordered after its withdrawal."""
    try:
        abandon.nowait(*attempt, **kwargs)
    except WindowFull:  # on an event loop
        import asyncio  # not at the top: only coroutines need it, and it takes long

        task = asyncio.get_running_loop().create_task(abandon.aio(*attempt, **kwargs))
        _given_up.add(task)
        task.add_done_callback(_given_up.discard)
    except OrcalikeError:
        pass  # if the group is lost, so is what the member held


class BoundMethod(Generic[P, R]):
    """Such a method of one object."""

    __slots__ = ("_body", "_object")

    def __init__(self, body: Callable[..., Steps[R]], owner: Any) -> None:
        self._body = body
        self._object = owner

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Go through it in this thread."""
        steps = self._body(self._object, *args, **kwargs)
        try:
            request = next(steps)
            while True:
                try:
                    outcome = request.operation(*request.arguments)
                except BaseException as error:  # noqa: BLE001 - the body decides
                    request = steps.throw(error)
                else:
                    request = steps.send(outcome)
        except StopIteration as end:
            result: R = end.value
            return result

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same in a coroutine."""
        steps = self._body(self._object, *args, **kwargs)
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


class Method(Generic[S_contra, P, R]):
    """The descriptor that stands in the class; a decorator for the body."""

    def __init__(self, body: Callable[Concatenate[S_contra, P], Steps[R]]) -> None:
        self.steps = body
        """The body, for another method: `yield from Queue.get.steps(queue)`."""
        self.__doc__ = body.__doc__

    @overload
    def __get__(self, obj: None, owner: type[Any] | None = None, /) -> Method[S_contra, P, R]: ...
    @overload
    def __get__(self, obj: S_contra, owner: type[Any] | None = None, /) -> BoundMethod[P, R]: ...
    def __get__(self, obj: Any, owner: type[Any] | None = None, /) -> Any:
        return self if obj is None else BoundMethod(self.steps, obj)
