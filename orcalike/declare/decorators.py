"""The decorators: what a program says of its classes, and what is checked when it says it.

A shared class stays the class that it was. Its operations become descriptors (feature D11), which
run at once on an object that is not shared; everything that can be recognised as breaking a
promise is refused here, all of it in one `DeclarationError` with file, line and remedy (D10).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from orcalike.declare.marks import is_invariant, is_local, mark_invariant, mark_local
from orcalike.runtime.atomic import Atomic
from orcalike.runtime.errors import DeclarationError
from orcalike.runtime.operation import Operation
from orcalike.transport.degree import Resilience, degree_of

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type[Any])
F = TypeVar("F")


@overload
def shared(cls: C, /) -> C: ...
@overload
def shared(*, resilience: Resilience | None = None) -> Callable[[C], C]: ...
def shared(cls: Any = None, /, *, resilience: Resilience | None = None) -> Any:
    """Declares a class whose objects a group can share.

    The class stays as it is: no base is added, and an object that is not shared runs its
    operations directly. `resilience` is the degree of all its writes that do not name their own.

    Raises:
        DeclarationError: A public method without `@read`, `@write` or `@local`; an operation
            that cannot run alike at each replica; an override of another kind.
    """
    _check_degree(resilience)

    def decorate(decorated: Any) -> Any:
        from orcalike.declare.registration import declare_class  # not at the top: it says why

        return declare_class(decorated, resilience)

    return decorate if cls is None else decorate(cls)


@overload
def read(function: Callable[Concatenate[S, P], R], /) -> Operation[S, P, R]: ...
@overload
def read() -> Callable[[Callable[Concatenate[S, P], R]], Operation[S, P, R]]: ...
def read(function: Any = None, /) -> Any:
    """Declares a method that runs on the local replica and changes nothing."""

    def decorate(method: Any) -> Operation[Any, ..., Any]:
        _check_function(method, "read")
        return Operation(method, "read")

    return decorate if function is None else decorate(function)


@overload
def write(function: Callable[Concatenate[S, P], R], /) -> Operation[S, P, R]: ...
@overload
def write(
    *, popup: bool = False, undo: bool = False, resilience: Resilience | None = None
) -> Callable[[Callable[Concatenate[S, P], R]], Operation[S, P, R]]: ...
def write(
    function: Any = None,
    /,
    *,
    popup: bool = False,
    undo: bool = False,
    resilience: Resilience | None = None,
) -> Any:
    """Declares a method that goes through the total order and runs at each replica.

    `popup`: it may take long, so each replica runs it in a thread of its own that holds the
    object's mutex. `undo`: an exception leaves the object as it was. `resilience`: its own
    degree, before the class's and the group's.
    """
    _check_degree(resilience)

    def decorate(method: Any) -> Operation[Any, ..., Any]:
        _check_function(method, "write")
        return Operation(method, "write", popup=popup, undo=undo, resilience=resilience)

    return decorate if function is None else decorate(function)


@overload
def local(method: F, /) -> F: ...
@overload
def local() -> Callable[[F], F]: ...
def local(method: Any = None, /) -> Any:
    """Declares a method or property that is no operation: it runs here, unordered, unlocked.

    It may use the clock, files and other objects, and should change no attribute. Operations may
    call it only as far as it keeps their rules.
    """
    return _declare_local if method is None else _declare_local(method)


def _declare_local(method: F) -> F:
    from orcalike.declare.class_members import functions_of  # not at the top: see registration.py

    functions = functions_of(method)
    if not functions or any(map(is_invariant, functions)):
        raise DeclarationError(
            f"@local needs a method or a property, not {method!r}: leave one of the decorators out"
        )
    for function in functions:
        mark_local(function)
    return method


@overload
def invariant(function: F, /) -> F: ...
@overload
def invariant() -> Callable[[F], F]: ...
def invariant(function: Any = None, /) -> Any:
    """Declares a method that says whether the object is as it must be, by its result or by raising.

    It runs after each write, hook and `__init__` of a shared object, at each replica. If it
    returns something false (None does not count) or raises, the caller gets `InvariantBroken`,
    which names the write; the object stays as the write left it, or is put back with `undo`.
    """

    def decorate(method: F) -> F:
        _check_function(method, "invariant")
        mark_invariant(method)
        return method

    return decorate if function is None else decorate(function)


@overload
def atomic(function: Callable[P, R], /) -> Atomic[P, R]: ...
@overload
def atomic(
    *, undo: bool = False, resilience: Resilience | None = None
) -> Callable[[Callable[P, R]], Atomic[P, R]]: ...
def atomic(
    function: Any = None, /, *, undo: bool = False, resilience: Resilience | None = None
) -> Any:
    """Declares a function of a module that runs on all objects passed to it at one place.

    It may call the operations of these objects, as plain calls, and of no others. With `undo`
    an exception leaves all of them as they were. Its degree is the largest of its objects' classes'
    and `resilience`.

    Raises:
        DeclarationError: It is a method, or cannot run alike at each replica.
    """

    _check_degree(resilience)

    def decorate(plain: Any) -> Atomic[..., Any]:
        from orcalike.declare.registration import declare_atomic  # not at the top: it says why

        _check_function(plain, "atomic")
        declared: Atomic[..., Any] = Atomic(plain, undo=undo, resilience=resilience)
        declare_atomic(declared, plain)
        return declared

    return decorate if function is None else decorate(function)


def _check_function(function: object, decorator: str) -> None:
    if isinstance(function, FunctionType) and not is_local(function) and not is_invariant(function):
        return
    if isinstance(function, property | cached_property):
        remedy = f"write @property above @{decorator}, not below"
    elif isinstance(function, staticmethod | classmethod):
        remedy = "it has no object to work on: use @local"
    elif isinstance(function, Operation | Atomic | FunctionType):
        remedy = "one decorator is enough"
    elif isinstance(function, type):
        remedy = "for a class use @shared"
    else:
        remedy = "write it with `def`"
    raise DeclarationError(f"@{decorator} needs a plain function, not {function!r}: {remedy}")


def _check_degree(resilience: object) -> None:
    if resilience is None:
        return
    try:
        degree_of(resilience)
    except ValueError as error:
        raise DeclarationError(f"{error}; leave it out for the group's own") from None
