"""What lies outside of a function: which package its code belongs to, and globals that differ from process to process."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType

import orcalike.runtime
import orcalike.transport
from orcalike.runtime.source import walk

_INSTALLED = tuple(
    {
        os.path.join(os.path.realpath(path), "")
        for path in (
            os.path.dirname(os.__file__),  # sysconfig says the same, and takes 300 KB of memory
            *(entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))),
            os.path.dirname(os.path.abspath(__file__)),
            *orcalike.runtime.__path__,
            *orcalike.transport.__path__,
        )
    }
)
CHANGING_METHODS = frozenset(
    {
        *("add", "append", "appendleft", "clear", "difference_update", "discard", "extend"),
        *("extendleft", "insert", "intersection_update", "move_to_end", "pop", "popitem"),
        *("popleft", "remove", "reverse", "rotate", "setdefault", "sort"),
        *("symmetric_difference_update", "update", "__setitem__", "__delitem__", "__ior__"),
        *("__iadd__", "__iand__", "__imul__", "__isub__", "__ixor__"),
    }
)
"""Methods of builtin containers that change them."""


@functools.lru_cache(maxsize=4096)
def is_the_programs(file: str) -> bool:
    """Whether a file is the program's own: neither the standard library's, nor installed, nor orcalike's."""
    return not file.startswith("<") and not os.path.realpath(file).startswith(_INSTALLED)


def unwrapped(value: object) -> object:
    """The function behind a decorated one (`functools.wraps`, `lru_cache`), or behind a `partial`."""
    for _ in range(16):
        inner = getattr(value, "func", None) if isinstance(value, functools.partial) else None
        if inner is None and not isinstance(value, type | ModuleType):
            inner = getattr(value, "__wrapped__", None)
        if inner is None:
            return value
        value = inner
    return value


def definition(function: FunctionType, name: str) -> list[ast.expr]:
    """What the function's module assigns to a global, at its top level."""
    tree = _tree(function.__code__.co_filename)
    if tree is None:
        return []
    return [value for target, value in _assigned(tree) if target == name]


def why_it_changes(function: FunctionType, name: str) -> str | None:
    """How a global of the function's module changes while the program runs; None if nothing shows it."""
    tree = _tree(function.__code__.co_filename)
    return None if tree is None else _changes(tree).get(name)


@functools.lru_cache(maxsize=64)
def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        yield target.id, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value


@functools.lru_cache(maxsize=64)
def _changes(tree: ast.Module) -> dict[str, str]:
    """Globals that functions of a module assign or change, and the line where."""
    found: dict[str, str] = {}
    for function in walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        nodes = walk(function)
        local = {arg.arg for arg in walk(function.args) if isinstance(arg, ast.arg)}
        stored = {
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        declared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        for name in declared & stored:
            found.setdefault(name, f"{function.name} assigns it (line {function.lineno})")
        for node in nodes:
            changed = _changed_name(node)
            if changed is not None and changed not in local and changed not in stored - declared:
                found.setdefault(changed, f"{function.name} changes it (line {node.lineno})")  # type: ignore[attr-defined]
    return found


def _changed_name(node: ast.AST) -> str | None:
    match node:
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            return name if method in CHANGING_METHODS else None
    return None
