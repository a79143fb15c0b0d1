"""What a function says, as its author wrote it: syntax trees, and digests of them.

The digest of two members' operations must be equal when their source is, whatever the path of
the file, its line numbers, comments and docstrings. Where there is no source (a prompt, `exec`),
the compiled code stands in for it.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Protocol, TypeAlias

FunctionSyntax: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


if TYPE_CHECKING:

    class Hash(Protocol):
        """What `hashlib` makes."""

        def update(self, data: bytes, /) -> None: ...


def syntax(function: FunctionType) -> FunctionSyntax | None:
    """The syntax tree of a function, with the line numbers of its file, or None without source.

    The function's whole file is parsed, once. It should be asked for when the function is
    declared, for the file may change later; where no function of that name begins on that line
    any more, there is no source.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)  # the module may have been edited and loaded again
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        return None
    return _functions("".join(lines)).get((code.co_firstlineno, code.co_name))


@functools.lru_cache(maxsize=8)
def _functions(source: str) -> dict[tuple[int, str], FunctionSyntax]:
    """Each function of a file by its first line (a decorator's, as in `co_firstlineno`)."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    found: dict[tuple[int, str], FunctionSyntax] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min(line.lineno for line in [node, *node.decorator_list])
            found[first, node.name] = node
        elif isinstance(node, ast.Lambda):
            found[node.lineno, "<lambda>"] = node
    return found


def update_digest(digest: Hash, function: FunctionType) -> None:
    """Adds a function's parameters and body to a digest, without its docstring (design 7)."""
    node = syntax(function)
    if node is None:
        parts = _code_parts(function.__code__, function.__doc__)
    else:
        parts = _node_parts([node.args, _returns(node), _body(node)])
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(4, "little") + data)


def _returns(node: FunctionSyntax) -> ast.expr | None:
    return None if isinstance(node, ast.Lambda) else node.returns


def _body(node: ast.AST) -> list[ast.stmt] | ast.expr:
    """A function's or class's body without the docstring."""
    if isinstance(node, ast.Lambda):
        return node.body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return node.body if ast.get_docstring(node, clean=False) is None else node.body[1:]


def _node_parts(value: object) -> Iterator[str]:
    """A tree in prefix order.

    Fields that are empty are left out: versions of Python differ in those that they have
    (`type_params` came with 3.12), and members may run different versions.
    """
    if isinstance(value, ast.AST):
        yield f"({type(value).__name__}"
        for field in value._fields:
            child = getattr(value, field, None)
            if field == "body" and isinstance(
                value, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
            ):
                child = _body(value)
            if child is not None and child != []:
                yield field
                yield from _node_parts(child)
        yield ")"
    elif isinstance(value, list):
        yield "["
        for item in value:
            yield from _node_parts(item)
        yield "]"
    else:
        yield repr(value)


def _code_parts(code: CodeType, doc: str | None) -> Iterator[str]:
    """Compiled code, and the code within it, without docstring, file and lines."""
    yield code.co_name
    yield repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags))
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    yield code.co_code.hex()
    for place, constant in enumerate(code.co_consts):
        if isinstance(constant, CodeType):
            yield from _code_parts(constant, None)
        elif isinstance(constant, frozenset):
            # Its order is the hash seed's, which members need not share.
            yield repr(sorted(map(repr, constant)))
        else:
            yield repr(None if place == 0 and constant == doc else constant)
