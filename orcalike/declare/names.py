"""What the names in a function stand for: its own, or something from outside of it."""

from __future__ import annotations

import ast
import builtins
import sys
from types import FunctionType, ModuleType

from orcalike.declare.ast_names import bound, parameters
from orcalike.declare.forbidden_names import (
    SEEDED,
    canonical_name,
    is_harmless,
    reason_against,
)
from orcalike.declare.name_aliases import assignments, is_part, parts_of
from orcalike.runtime.source import FunctionSyntax, walk

MISSING = object()
"""The value of a name that has none yet, or none that can be known."""


class Names:
    """The names of one function, nested ones included, as far as a walk through it has come.

    `owned` are the parameters that stand for shared objects.
    """

    def __init__(self, function: FunctionType, node: FunctionSyntax, owned: frozenset[str]) -> None:
        self._outermost = node, frozenset(bound(_body(node)))
        self.owned = owned - self._outermost[1]
        """A method that rebinds `self` is looked at no further in that respect."""
        self.assigned = assignments(node)
        self.parts = parts_of(self.assigned, self.owned.__contains__)
        """The local names that stand for something in a shared object."""
        self._function = function
        self._scopes: list[set[str]] = []
        self._imports: dict[str, str] = {}
        self._resolving: set[str] = set()

    def enter(self, node: FunctionSyntax) -> None:
        """The body of a function begins; `leave` when it ends."""
        outermost, names = self._outermost
        own = names if node is outermost else bound(_body(node))
        self._scopes.append({arg.arg for arg in parameters(node.args)}.union(own))

    def leave(self) -> None:
        """The body of a function ends."""
        self._scopes.pop()

    @property
    def depth(self) -> int:
        """How many functions are around this place, itself included."""
        return len(self._scopes)

    def note_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """The function imports names itself."""
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                self._imports[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            else:
                top = alias.name.partition(".")[0]
                self._imports[alias.asname or top] = alias.name if alias.asname else top

    def is_local(self, name: str) -> bool:
        """Whether a name belongs to the function, or to one around it that is walked through."""
        return any(name in scope for scope in self._scopes)

    def is_outside(self, name: str) -> bool:
        """Whether a name belongs to no function around the innermost one."""
        return not any(name in scope for scope in self._scopes[:-1])

    def is_owned(self, name: str) -> bool:
        """Whether a name stands for the shared object here (a nested function may hide it)."""
        return name in self.owned and not any(name in scope for scope in self._scopes[1:])

    def is_part(self, node: ast.expr) -> bool:
        """Whether an expression leads to a shared object, or to something in it."""
        return is_part(node, self.parts, self.is_owned)

    def resolve(self, node: ast.expr) -> tuple[str, object] | None:
        """The dotted name and the value of a name or attribute from outside the function."""
        if isinstance(node, ast.Name):
            if self.is_local(node.id):
                path = self._imports.get(node.id)
                if path is None:
                    return self.resolve_alias(node.id)
                return path, sys.modules.get(path, MISSING)
            value = _outer(self._function, node.id)
            return None if value is MISSING else (canonical_name(value), value)
        if isinstance(node, ast.Attribute) and (base := self.resolve(node.value)) is not None:
            path, owner = base
            if isinstance(owner, ModuleType | type):
                return f"{path}.{node.attr}", getattr(owner, node.attr, MISSING)
            of_class = MISSING if owner is MISSING else vars(type(owner)).get(node.attr, MISSING)
            method = of_class if isinstance(of_class, FunctionType) else MISSING
            return f"{path}.{node.attr}", method
        return None

    def resolve_alias(self, name: str) -> tuple[str, object] | None:
        """What a local name stands for that is assigned once, from a name or an attribute."""
        values = self.assigned.get(name, [])
        if len(values) != 1 or name in self._resolving:
            return None
        (value,) = values
        if not isinstance(value, ast.Name | ast.Attribute):
            return None
        self._resolving.add(name)
        try:
            return self.resolve(value)
        finally:
            self._resolving.discard(name)

    def is_alias(self, node: ast.expr) -> bool:
        """Whether a name is the function's own, and stands for something else."""
        return (
            isinstance(node, ast.Name) and node.id not in self._imports and self.is_local(node.id)
        )

    def reason_in(self, expression: ast.expr) -> object:
        """Why what a global is made from may not be used; None if it may."""
        scopes, self._scopes = self._scopes, []
        try:
            for node in walk(expression):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                    target = self.resolve(node.func)
                elif isinstance(node, ast.Attribute):
                    target = self.resolve(node)
                    if target is not None and is_harmless(target[1]):
                        continue
                else:
                    continue
                if target is None or name_of(*target) in SEEDED:
                    continue
                reason = reason_against(target[0])
                if reason is None and target[1] is not MISSING:
                    reason = reason_against(canonical_name(target[1]))
                if reason is not None:
                    return reason
        finally:
            self._scopes = scopes
        return None


def name_of(path: str, value: object) -> str:
    """The name by which a value is known everywhere; the path to it if it has no value."""
    return path if value is MISSING else canonical_name(value)


def _body(node: FunctionSyntax) -> list[ast.stmt] | list[ast.expr]:
    return node.body if isinstance(node.body, list) else [node.body]


def _outer(function: FunctionType, name: str) -> object:
    """What a name that is not local means to a function, at this moment."""
    if name in function.__code__.co_freevars and function.__closure__ is not None:
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # not assigned yet: the class itself, say
            return MISSING
    return function.__globals__.get(name, getattr(builtins, name, MISSING))
