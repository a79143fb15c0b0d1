"""Methods that are one operation, whose arguments are made ready to travel where it is called.

`list.extend` takes any iterable, and an iterator cannot travel: `extend` makes a list of it in the
caller's process, and `_extend`, the operation, gets that. Like an operation it can be called, awaited
with `aio`, started with `nowait`, and limited with `options`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from orcalike.errors import BlockingInLoop
from orcalike.objects.signatures import BoundDescribed, Described
from orcalike.runtime.awaiting import blocking_method
from orcalike.runtime.invocation import Invocation
from orcalike.runtime.invocation_coroutine import InvocationCoroutine
from orcalike.runtime.operation import BoundOperation, Operation

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)
P = ParamSpec("P")
R = TypeVar("R")


class BoundSending(BoundDescribed, Generic[P, R]):
    """Such a method of one object."""

    __slots__ = ("_operation",)

    def __init__(
        self, method: Sending[Any, P, R], owner: Any, operation: BoundOperation[..., R]
    ) -> None:
        self._method = method
        self._object = owner
        self._operation = operation

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Wait for the outcome: the result, or what the operation raised."""
        arguments = self._method.ready(self._object, *args, **kwargs)
        try:
            return self._operation(*arguments)
        except BlockingInLoop:
            raise blocking_method(self._object, self.__name__, sys._getframe(1)) from None

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> InvocationCoroutine[R]:
        """The same as a coroutine; the call is sent at once, or when there is room for it."""
        return self._operation.aio(*self._method.ready(self._object, *args, **kwargs))

    def nowait(self, *args: P.args, **kwargs: P.kwargs) -> Invocation[R]:
        """Do not wait: returns the invocation."""
        return self._operation.nowait(*self._method.ready(self._object, *args, **kwargs))

    def options(
        self, *, timeout: float | None = None, stable: int | None = None
    ) -> BoundSending[P, R]:
        """The same method with the options of an operation."""
        operation = self._operation.options(timeout=timeout, stable=stable)
        return BoundSending(self._method, self._object, operation)


class Sending(Described, Generic[S_contra, P, R]):
    """The descriptor that stands in the class; `sends` makes it."""

    def __init__(
        self,
        operation: Operation[Any, ..., R],
        ready: Callable[Concatenate[S_contra, P], tuple[Any, ...]],
    ) -> None:
        super().__init__(ready, operation.function)
        self._operation = operation
        self.ready = ready
        """What makes the arguments of the operation, from the object and those of a call."""

    @overload
    def __get__(self, obj: None, owner: type[Any] | None = None, /) -> Sending[S_contra, P, R]: ...
    @overload
    def __get__(self, obj: S_contra, owner: type[Any] | None = None, /) -> BoundSending[P, R]: ...
    def __get__(self, obj: Any, owner: type[Any] | None = None, /) -> Any:
        if obj is None:
            return self
        # By its name: a subclass has an operation of its own.
        return BoundSending(self, obj, getattr(obj, self._operation.name))

    def __call__(self, obj: S_contra, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Wait for the outcome, with that object."""
        bound: BoundSending[P, R] = self.__get__(obj)
        return bound(*args, **kwargs)


def sends(
    operation: Operation[Any, ..., R],
) -> Callable[[Callable[Concatenate[S, P], tuple[Any, ...]]], Sending[S, P, R]]:
    """A decorator: the method returns the arguments with which `operation` is invoked."""

    def decorate(ready: Callable[Concatenate[S, P], tuple[Any, ...]]) -> Sending[S, P, R]:
        return Sending(operation, ready)

    return decorate
