"""What can be seen in an operation's source before it ever runs (feature D10).

Operations run at each replica, on the thread that received them: they must come to the same
result everywhere, never wait, and touch nothing but the object and their arguments. A run-time
system cannot undo a clock that was read, so what can be recognised is refused when the class is
declared, with file, line and the remedy. Names are resolved through the function's own globals
and closure: `from time import time as t` is recognised, a variable called `time` is not mistaken.

What an operation calls is checked with it: helpers of its class, and functions of its module.
What has no source (a prompt, `exec`) is let through; replicas that differ are found later.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType
from typing import Any

from orcalike.forbidden import SEEDED, canonical_name, is_harmless, reason_against
from orcalike.runtime.operation import Operation
from orcalike.runtime.source import FunctionSyntax, syntax
from orcalike.scopes import bound, parameters, root

MUTATORS = frozenset(
    {
        *("add", "append", "appendleft", "clear", "difference_update", "discard", "extend"),
        *("extendleft", "insert", "intersection_update", "move_to_end", "pop", "popitem"),
        *("popleft", "remove", "reverse", "rotate", "setdefault", "sort"),
        *("symmetric_difference_update", "update"),
    }
)
CHANGE_FIRST_ARGUMENT = frozenset(
    {
        *(f"_heapq.{name}" for name in ("heapify", "heappop", "heappush", "heappushpop")),
        *("_heapq.heapreplace", "_bisect.insort_left", "_bisect.insort_right"),
        *("builtins.setattr", "builtins.delattr"),
    }
)
_CONTAINERS = (list, dict, set, bytearray, deque)
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Subject:
    """A function to check, and by which rules."""

    function: FunctionType
    who: str
    """What messages call it: `JobQueue.put`."""
    pure: bool
    """Reads and guards: what is `owned` may not change."""
    owned: frozenset[str]
    """The parameters that stand for shared objects: `self`, or all of an atomic function's."""
    cls: type[Any] | None = None
    """The shared class, in which `self.name` is looked up; None for plain functions."""
    origin: type[Any] | None = None
    """The class that defines it, for `super()` and names with two underscores."""
    helper: bool = False
    """Called by an operation; it may be a generator that the operation runs through."""


def method(
    cls: type[Any], origin: type[Any], function: FunctionType, who: str, *, pure: bool
) -> Subject:
    """The subject for a method, whose first parameter is the object."""
    return Subject(function, who, pure, frozenset(function.__code__.co_varnames[:1]), cls, origin)


def check(subjects: Iterable[Subject]) -> list[str]:
    """All that is wrong with some functions and what they call, one line for each finding."""
    queue = deque(subjects)
    seen: set[tuple[FunctionType, bool]] = set()
    found: dict[str, None] = {}
    while queue:
        subject = queue.popleft()
        if (subject.function, subject.pure) in seen:
            continue
        seen.add((subject.function, subject.pure))
        found.update(dict.fromkeys(_shape(subject)))
        node = syntax(subject.function)
        if node is not None:
            visitor = _Visitor(subject, node)
            visitor.visit_function(node)
            found.update(dict.fromkeys(visitor.findings))
            queue.extend(visitor.called)
    return list(found)


def finding(function: FunctionType, who: str, what: str, remedy: str, line: int = 0) -> str:
    """One line of a DeclarationError: where, who, what is wrong, and what to do."""
    code = function.__code__
    return f"{code.co_filename}:{line or code.co_firstlineno}: {who} {what}; {remedy}"


def title(thing: type[Any] | FunctionType) -> str:
    """What messages call a class or function: its name, without that of a function around it."""
    return thing.__qualname__.rpartition("<locals>.")[2]


def _shape(subject: Subject) -> Iterator[str]:
    """What the compiled code alone tells."""
    flags = subject.function.__code__.co_flags
    if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        yield finding(
            subject.function,
            subject.who,
            "is async, and operations never wait",
            "write it with `def`, and await it where you call it, with `.aio()`",
        )
    elif flags & inspect.CO_GENERATOR and not subject.helper:
        yield finding(
            subject.function,
            subject.who,
            "is a generator, which would go on after the operation has ended",
            "return a list",
        )


class _Visitor(ast.NodeVisitor):
    """Walks one function, nested ones included."""

    def __init__(self, subject: Subject, node: FunctionSyntax) -> None:
        self.subject = subject
        self.findings: list[str] = []
        self.called: list[Subject] = []
        self.scopes: list[set[str]] = []
        self.imports: dict[str, str] = {}
        # A method that rebinds `self` is looked at no further in that respect.
        body = node.body if isinstance(node.body, list) else [node.body]
        self.owned = subject.owned - set(bound(body))

    def report(self, node: ast.AST, what: str, remedy: str) -> None:
        line = getattr(node, "lineno", 0)
        self.findings.append(finding(self.subject.function, self.subject.who, what, remedy, line))

    # Scopes.

    def visit_function(self, node: FunctionSyntax) -> None:
        """Defaults belong to the scope outside, the body to a new one; annotations never run."""
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        body = node.body if isinstance(node.body, list) else [node.body]
        self.scopes.append({arg.arg for arg in parameters(node.args)} | set(bound(body)))
        for child in body:
            self.visit(child)
        self.scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.report(node, f"defines the coroutine {node.name}", "operations never wait: use `def`")

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit_function(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.target)
            self.visit(node.value)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self.imports[alias.asname or top] = alias.name if alias.asname else top

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.imports[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def is_owned(self, name: str) -> bool:
        """Whether a name stands for the shared object here (a nested function may hide it)."""
        return name in self.owned and not any(name in scope for scope in self.scopes[1:])

    # Names, and what they stand for.

    def resolve(self, node: ast.expr) -> tuple[str, object] | None:
        """The dotted name and the value of a name or attribute from outside the function."""
        if isinstance(node, ast.Name):
            if any(node.id in scope for scope in self.scopes):
                path = self.imports.get(node.id)
                return None if path is None else (path, sys.modules.get(path, _MISSING))
            value = _outer(self.subject.function, node.id)
            return None if value is _MISSING else (canonical_name(value), value)
        if isinstance(node, ast.Attribute) and (base := self.resolve(node.value)) is not None:
            path, owner = base
            known = isinstance(owner, ModuleType | type)
            return f"{path}.{node.attr}", getattr(owner, node.attr, _MISSING) if known else _MISSING
        return None

    def check_use(self, node: ast.expr) -> bool:
        """Reports what may not be used; False when the name is the function's own."""
        target = self.resolve(node)
        if target is None:
            return False
        path, value = target
        known = value is not _MISSING
        if known and is_harmless(value):
            return True
        reason = reason_against(path)
        if reason is None and known:
            reason = reason_against(canonical_name(value))
        if isinstance(value, ModuleType) and isinstance(node, ast.Name):
            reason = None  # what matters is which of its functions is used
        if reason is not None:
            text, name = ast.unparse(node), _name_of(path, value)
            if text.rpartition(".")[2] != name.rpartition(".")[2]:
                text = f"{text} ({name})"
            self.report(node, f"uses {text}, {reason.why}", reason.remedy)
        elif isinstance(value, FunctionType) and value.__module__ == self._module:
            who = f"{title(value)}, which {self._who} calls,"
            self.called.append(Subject(value, who, pure=False, owned=frozenset(), helper=True))
        return True

    @property
    def _module(self) -> str:
        return self.subject.function.__module__

    @property
    def _who(self) -> str:
        return self.subject.who.partition(", which ")[0]

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.check_use(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.check_change(node, f"assigns {ast.unparse(node)}")
        elif self.check_use(node):
            return
        elif (found := self.member(node)) is not None:
            self.check_member(node, *found)
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.check_change(node, f"assigns {ast.unparse(node)}")
        self.generic_visit(node)

    # The object's own methods.

    def member(self, node: ast.Attribute) -> tuple[type[Any], object] | None:
        """The class attribute behind `self.name` or `super().name`, and the class that has it."""
        cls, origin = self.subject.cls, self.subject.origin
        if cls is None or origin is None:
            return None
        if isinstance(node.value, ast.Name) and self.is_owned(node.value.id):
            line = cls.__mro__
        elif _is_super(node.value) and origin in cls.__mro__:
            line = cls.__mro__[cls.__mro__.index(origin) + 1 :]
        else:
            return None
        name = node.attr
        if name.startswith("__") and not name.endswith("__"):
            name = f"_{origin.__name__.lstrip('_')}{name}"
        return next(((owner, vars(owner)[name]) for owner in line if name in vars(owner)), None)

    def check_member(self, node: ast.Attribute, origin: type[Any], value: object) -> None:
        if isinstance(value, property):
            value = value.fget
        static = isinstance(value, staticmethod)
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, Operation):
            if self.subject.pure and value.kind == "write":
                self.report(node, f"uses the write {node.attr}, {_LOOKS}", _WRITE)
            if origin is not self.subject.cls:
                # An operation of a base is checked here: the base need not be shared itself.
                pure = self.subject.pure or value.kind == "read"
                self.call(node, origin, value.function, pure=pure)
        elif isinstance(value, FunctionType) and static:
            self.call(node, origin, value, pure=self.subject.pure, owned=frozenset())
        elif isinstance(value, FunctionType):
            self.call(node, origin, value, pure=self.subject.pure)

    def call(
        self,
        node: ast.Attribute,
        origin: type[Any],
        function: FunctionType,
        *,
        pure: bool,
        owned: frozenset[str] | None = None,
    ) -> None:
        assert self.subject.cls is not None
        who = f"{title(origin)}.{node.attr}, which {self._who} calls,"
        subject = method(self.subject.cls, origin, function, who, pure=pure)
        owned = subject.owned if owned is None else owned
        self.called.append(replace(subject, owned=owned, helper=True))

    # Changes.

    def visit_Global(self, node: ast.Global) -> None:
        self._shared_name(node, node.names, "global")

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        outside = [n for n in node.names if not any(n in scope for scope in self.scopes[:-1])]
        self._shared_name(node, outside, "nonlocal")

    def _shared_name(self, node: ast.stmt, names: list[str], kind: str) -> None:
        if names:
            self.report(node, f"assigns the {kind} {', '.join(names)}", _KEEP)

    def check_change(self, node: ast.expr, what: str) -> None:
        """A change of something that a name with dots and brackets leads to."""
        base, through = root(node)
        if not isinstance(base, ast.Name):
            if isinstance(base, ast.Call) and _calls(base, "type"):
                self.report(node, f"{what}, which belongs to the class", _KEEP)
        elif self.is_owned(base.id):
            if "__class__" in through:
                self.report(node, f"{what}, which belongs to the class", _KEEP)
            elif self.subject.pure:
                self.report(node, f"{what}, {_LOOKS}", _WRITE)
        elif not any(base.id in scope for scope in self.scopes):
            self.report(node, f"{what}, which does not belong to the object", _KEEP)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        target = self.resolve(function)
        name = "" if target is None else _name_of(*target)
        if name in SEEDED and (node.args or node.keywords):
            for child in [*node.args, *(keyword.value for keyword in node.keywords)]:
                self.visit(child)
            return
        if name in CHANGE_FIRST_ARGUMENT and node.args:
            self.check_change(node.args[0], f"calls {ast.unparse(node)}")
        elif isinstance(function, ast.Attribute) and function.attr in MUTATORS:
            self._check_mutator(function)
        self.generic_visit(node)

    def _check_mutator(self, function: ast.Attribute) -> None:
        base, through = root(function.value)
        if not isinstance(base, ast.Name):
            return
        if self.is_owned(base.id) and not through:
            return  # a method of the class itself
        target = self.resolve(function.value)
        if self.is_owned(base.id) or (target is not None and isinstance(target[1], _CONTAINERS)):
            self.check_change(function.value, f"calls {ast.unparse(function)}()")

    def visit_Return(self, node: ast.Return) -> None:
        own = len(self.scopes) == 1 and not self.subject.helper
        if own and isinstance(node.value, ast.GeneratorExp):
            what = "returns a generator, which would go on after the operation has ended"
            self.report(node, what, "return a list")
        self.generic_visit(node)


_KEEP = "keep it in an attribute of the object, or pass it as an argument"
_LOOKS = "and reads and guards change nothing"
_WRITE = "do it in a @write"


def _name_of(path: str, value: object) -> str:
    return path if value is _MISSING else canonical_name(value)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and not node.args and _calls(node, "super")


def _calls(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == name


def _outer(function: FunctionType, name: str) -> object:
    """What a name that is not local means to a function, at this moment."""
    if name in function.__code__.co_freevars and function.__closure__ is not None:
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # not assigned yet: the class itself, say
            return _MISSING
    return function.__globals__.get(name, getattr(builtins, name, _MISSING))
