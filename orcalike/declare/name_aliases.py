"""What the names in one function stand for: things from outside of it, or parts of a shared object.

It goes by assignments alone, not by the order in which they run. A name counts as another one's alias
only if all that is ever assigned to it is of that kind: so a doubt is never a finding.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator

from orcalike.declare.ast_names import parameters
from orcalike.runtime.source import walk

_VIEWS = frozenset({"get", "values", "items", "setdefault", "keys"})
"""Methods that give what lies in a container, and no copy of it."""
_ELEMENTS = frozenset({"min", "max", "next", "iter", "reversed", "enumerate", "zip"})
"""Builtin functions that do so."""


def assignments(node: ast.AST) -> dict[str, list[ast.expr | None]]:
    """What is assigned to each name in a function; None for what no expression shows."""
    found: dict[str, list[ast.expr | None]] = defaultdict(list)
    for target, value in _pairs(node):
        _unpack(target, value, found)
    return found


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    for each in walk(node):
        match each:
            case ast.expr() if not isinstance(each, ast.NamedExpr | ast.Lambda):
                pass
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield target, value
            case ast.AnnAssign(target=target, value=value) if value is not None:
                yield target, value
            case ast.NamedExpr(target=target, value=value):
                yield target, value
            case ast.AugAssign(target=target):
                yield target, None
            case ast.For(target=target, iter=it) | ast.comprehension(target=target, iter=it):
                yield target, ast.Subscript(value=it, slice=ast.Constant(0), ctx=ast.Load())
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                yield target, None
            case ast.FunctionDef() | ast.Lambda() | ast.AsyncFunctionDef() if each is not node:
                for arg in parameters(each.args):
                    yield ast.Name(id=arg.arg, ctx=ast.Store()), None
            case ast.ExceptHandler(name=str(name)):
                yield ast.Name(id=name, ctx=ast.Store()), None


def _unpack(
    target: ast.expr, value: ast.expr | None, found: dict[str, list[ast.expr | None]]
) -> None:
    if isinstance(target, ast.Name):
        found[target.id].append(value)
    elif isinstance(target, ast.Starred):
        _unpack(target.value, None, found)
    elif isinstance(target, ast.Tuple | ast.List):
        same = (
            isinstance(value, ast.Tuple | ast.List)
            and len(value.elts) == len(target.elts)
            and not any(isinstance(each, ast.Starred) for each in [*value.elts, *target.elts])
        )
        for index, each in enumerate(target.elts):
            part = value.elts[index] if same and isinstance(value, ast.Tuple | ast.List) else value
            _unpack(each, part, found)


def parts_of(
    assigned: dict[str, list[ast.expr | None]], is_owned: Callable[[str], bool]
) -> set[str]:
    """The names that stand for parts of what is owned."""
    known: set[str] = set()
    while True:
        more = {
            name
            for name, values in assigned.items()
            if name not in known
            and not is_owned(name)
            and all(value is not None and is_part(value, known, is_owned) for value in values)
        }
        if not more:
            return known
        known |= more


def is_part(node: ast.expr, known: set[str], is_owned: Callable[[str], bool]) -> bool:
    """Whether an expression gives something that lies in what is owned, and no copy."""
    match node:
        case ast.Name(id=name):
            return name in known or is_owned(name)
        case ast.Subscript(slice=ast.Slice()):
            return False
        case ast.Attribute(value=value) | ast.Subscript(value=value) | ast.NamedExpr(value=value):
            return is_part(value, known, is_owned)
        case ast.IfExp(body=body, orelse=orelse):
            return is_part(body, known, is_owned) or is_part(orelse, known, is_owned)
        case ast.BoolOp(values=values):
            return any(is_part(value, known, is_owned) for value in values)
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _VIEWS:
            return is_part(value, known, is_owned)
        case ast.Call(func=ast.Name(id=name), args=args) if name in _ELEMENTS:
            return any(is_part(arg, known, is_owned) for arg in args)
    return False
