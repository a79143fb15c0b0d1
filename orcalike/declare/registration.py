"""What the decorators check and register (`decorators`), with the syntax of the functions at hand.

It is a module of its own because `ast` and `inspect` take long to import: the first class or atomic
function that a program declares imports them, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

from orcalike.declare import determinism
from orcalike.declare.class_members import Members, guard_problems
from orcalike.declare.pickling import refuse_pickles
from orcalike.declare.subject import Subject, finding
from orcalike.runtime.atomic import Atomic
from orcalike.runtime.classes import AtomicInfo, ClassInfo, declare, digest_of
from orcalike.runtime.errors import DeclarationError
from orcalike.runtime.registered import import_name, title_of
from orcalike.transport.degree import Resilience


def declare_class(cls: Any, resilience: Resilience | None) -> Any:
    """Check a class and its operations, and register it; raises DeclarationError."""
    if not isinstance(cls, type):
        remedy = "write it above a class; an object has its name from group.share()"
        if callable(cls):
            remedy = "for a function use @atomic"
        raise DeclarationError(f"@shared needs a class, not {cls!r}: {remedy}")
    members = Members(cls)
    _raise([*members.problems(), *determinism.check(members.subjects())])
    operations = members.take_over()
    words = [f"{op.name} {op.kind} {op.popup} {op.undo} {op.resilience}" for op in operations]
    info = ClassInfo(
        cls=cls,
        name=import_name(cls),
        operations=operations,
        digest=digest_of(
            [*words, str(resilience), *members.hooks, *members.invariants], members.functions()
        ),
        resilience=resilience,
        hooks=frozenset(members.hooks),
        init=members.init,
        invariants=tuple(members.invariants.values()),
    )
    for index, operation in enumerate(operations):
        operation.index = index
        operation.info = info
        if info.invariants and operation.kind == "write":
            operation.look_at_invariants()
        if operation.resilience is None:
            operation.degree = info.degree
    refuse_pickles(cls)
    declare(info)
    return cls


def declare_atomic(declared: Atomic[..., Any], function: FunctionType) -> None:
    """Check an atomic function, and register it; raises DeclarationError."""
    _check_atomic(function)
    declared.guard_declared = lambda guard: _declare_guard(declared, guard)
    declare(_atomic_info(declared, [function]))


def _check_atomic(function: FunctionType) -> None:
    if "." in title_of(function):
        what, remedy = "is a method", "put @atomic on a function of the module"
        _raise([finding(function, title_of(function), what, remedy)])
    _raise(determinism.check([_atomic_subject(function)]))


def _atomic_subject(function: FunctionType) -> Subject:
    label = f"atomic {title_of(function)}"
    return Subject(function, label, pure=False, owned=frozenset())


def check_again(info: ClassInfo | AtomicInfo, notes: dict[str, None]) -> list[str]:
    """What is wrong with something that was declared, now that all names of its module exist."""
    if isinstance(info, ClassInfo):
        return determinism.check(Members(info.cls).subjects(), notes)
    subjects = [_atomic_subject(info.atomic.function)]
    if info.atomic.guard is not None:
        subjects.append(_guard_subject(info.atomic.function, info.atomic.guard))
    return determinism.check(subjects, notes)


def _atomic_info(declared: Atomic[..., Any], functions: list[FunctionType]) -> AtomicInfo:
    options = [f"undo={declared.undo}", f"resilience={declared.resilience}"]
    digest = digest_of(options, functions)
    return AtomicInfo(declared, import_name(declared.function), digest)


def _declare_guard(declared: Atomic[..., Any], guard: FunctionType) -> None:
    """Checks an atomic function's guard, which comes when the function is declared already."""
    function: FunctionType = declared.function
    _raise(guard_problems(function, guard, _guard_label(function), method=False))
    _raise(determinism.check([_guard_subject(function, guard)]))
    declare(_atomic_info(declared, [function, guard]))


def _guard_label(function: FunctionType) -> str:
    return f"the guard of atomic {title_of(function)}"


def _guard_subject(function: FunctionType, guard: FunctionType) -> Subject:
    code = guard.__code__
    owned = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    return Subject(guard, _guard_label(function), pure=True, owned=owned, guard=True)


collected: list[str] | None = None
"""Where a program is only checked (`orcalike check`): all problems so far, of which none is raised."""


def _raise(problems: Iterable[str]) -> None:
    """Shows all problems at once, one on a line."""
    lines = list(problems)
    if collected is not None:
        collected.extend(lines)
    elif lines:
        raise DeclarationError("\n".join(lines))
