"""Which names a piece of syntax binds, and where a chain of attributes begins."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from orcalike.runtime.source import children


def root(node: ast.expr) -> tuple[ast.expr, list[str]]:
    """`self` and what lies between for `self.jobs[0].name`: the names of the attributes."""
    through: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.NamedExpr):
        if not isinstance(node, ast.NamedExpr):
            through.append(node.attr if isinstance(node, ast.Attribute) else "")
        node = node.value
    return node, through


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters of a function, those with stars too."""
    starred = [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *starred]


def bound(body: Iterable[ast.AST]) -> Iterator[str]:
    """The names that a function's body binds; a comprehension's count as the function's own."""
    nodes = list(body)
    outside: set[str] = set()
    names: set[str] = set()
    for node in nodes:  # it grows
        inside = True
        match node:
            case ast.expr() if type(node) not in _MAY_BIND:
                pass
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                names.add(name)
                inside = False
            case ast.Lambda():
                inside = False
            case ast.Global(names=listed) | ast.Nonlocal(names=listed):
                outside.update(listed)
            case ast.alias(name=name, asname=other):
                names.add(other or name.partition(".")[0])
            case ast.ExceptHandler(name=str(name)):
                names.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.MatchMapping(rest=str(name)):
                names.add(name)
        if inside:
            nodes += children(node)
    yield from names - outside


_MAY_BIND = frozenset({ast.Name, ast.Lambda})
"""Of expressions: most nodes are none of these."""


def calls(node: ast.Call, name: str) -> bool:
    """Whether this is `name(...)`."""
    return isinstance(node.func, ast.Name) and node.func.id == name
