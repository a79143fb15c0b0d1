"""The decorators: what a program says of its classes, and what is checked when it says it.

A shared class stays the class that it was. Its operations become descriptors (feature D11), which
run at once on an object that nobody shared; everything that can be recognised as breaking a
promise is refused here, all of it in one `DeclarationError` with file, line and remedy (D10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from orcalike import lint
from orcalike.members import Members, functions_of, guard_problems, mark_local
from orcalike.runtime.classes import AtomicInfo, ClassInfo, declare, digest_of
from orcalike.runtime.errors import DeclarationError
from orcalike.runtime.extension_types import import_name
from orcalike.runtime.operation import Atomic, Operation
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

    The class stays as it is: no base is added, and an object that nobody shared runs its
    operations directly. `resilience` is the degree of all its writes that do not name their own.

    Raises:
        DeclarationError: A public method without `@read`, `@write` or `@local`; an operation
            that cannot run alike at each replica; an override of another kind.
    """
    _check_degree(resilience)
    if cls is None:
        return lambda decorated: _declare_class(decorated, resilience)
    return _declare_class(cls, resilience)


def read(function: Callable[Concatenate[S, P], R], /) -> Operation[S, P, R]:
    """Declares a method that runs on the local replica and changes nothing."""
    _check_function(function, "read")
    return Operation(function, "read")


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
    object's mutex (D20). `undo`: an exception leaves the object as it was. `resilience`: its own
    degree, before the class's and the group's.
    """
    _check_degree(resilience)

    def decorate(method: Any) -> Operation[Any, ..., Any]:
        _check_function(method, "write")
        return Operation(method, "write", popup=popup, undo=undo, resilience=resilience)

    return decorate if function is None else decorate(function)


def local(method: F, /) -> F:
    """Declares a method or property that is no operation: it runs here, unordered, unlocked.

    It may use the clock, files and other objects, and should change no attribute. Operations may
    call it only as far as it keeps their rules.
    """
    functions = functions_of(method)
    if not functions:
        raise DeclarationError(
            f"@local needs a method or a property, not {method!r}: leave one of the decorators out"
        )
    for function in functions:
        mark_local(function)
    return method


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
        _check_function(plain, "atomic")
        _check_atomic(plain)
        declared: Atomic[..., Any] = Atomic(plain, undo=undo, resilience=resilience)
        declared.guard_declared = lambda guard: _declare_guard(declared, guard)
        declare(_atomic_info(declared, [plain]))
        return declared

    return decorate if function is None else decorate(function)


def _declare_class(cls: Any, resilience: Resilience | None) -> Any:
    if not isinstance(cls, type):
        raise DeclarationError(f"@shared needs a class, not {cls!r}: for a function use @atomic")
    members = Members(cls)
    _raise([*members.problems(), *lint.check(members.subjects())])
    operations = members.take_over()
    words = [f"{op.name} {op.kind} {op.popup} {op.undo} {op.resilience}" for op in operations]
    info = ClassInfo(
        cls=cls,
        name=import_name(cls),
        operations=operations,
        digest=digest_of([*words, str(resilience), *members.hooks], members.functions()),
        resilience=resilience,
        hooks=frozenset(members.hooks),
        init=members.init,
    )
    for index, operation in enumerate(operations):
        operation.index = index
        operation.info = info
        if operation.resilience is None:
            operation.degree = info.degree
    declare(info)
    return cls


def _check_function(function: object, decorator: str) -> None:
    if isinstance(function, FunctionType):
        return
    if isinstance(function, property | cached_property):
        remedy = f"write @property above @{decorator}, not below"
    elif isinstance(function, staticmethod | classmethod):
        remedy = "it has no object to work on: use @local"
    elif isinstance(function, Operation | Atomic):
        remedy = "one decorator is enough"
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


def _check_atomic(function: FunctionType) -> None:
    if "." in lint.title(function):
        what, remedy = "is a method", "put @atomic on a function of the module"
        _raise([lint.finding(function, lint.title(function), what, remedy)])
    who = f"atomic {lint.title(function)}"
    _raise(lint.check([lint.Subject(function, who, pure=False, owned=frozenset())]))


def _atomic_info(declared: Atomic[..., Any], functions: list[FunctionType]) -> AtomicInfo:
    options = [f"undo={declared.undo}", f"resilience={declared.resilience}"]
    digest = digest_of(options, functions)
    return AtomicInfo(declared, import_name(declared.function), digest)


def _declare_guard(declared: Atomic[..., Any], guard: FunctionType) -> None:
    """Checks an atomic function's guard, which comes when the function is declared already."""
    function: FunctionType = declared.function
    who = f"the guard of atomic {lint.title(function)}"
    _raise(guard_problems(function, guard, who, method=False))
    code = guard.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    _raise(lint.check([lint.Subject(guard, who, pure=True, owned=frozenset(parameters))]))
    declare(_atomic_info(declared, [function, guard]))


def _raise(problems: Iterable[str]) -> None:
    """Shows all problems at once, one on a line."""
    if lines := list(problems):
        raise DeclarationError("\n".join(lines))
