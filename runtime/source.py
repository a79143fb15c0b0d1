"""What a function says, as its author wrote it: syntax trees, and digests of them.

The digest of two members' operations must be equal when their source is, whatever the path of
the file, its line numbers, comments and docstrings. Where there is no source (a prompt, `exec`),
the compiled code stands in for it.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Hashable, Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

FunctionSyntax: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


if TYPE_CHECKING:

    class Hash(Protocol):
        """What `hashlib` makes."""

        def update(self, data: bytes | bytearray, /) -> None: ...


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
    return _functions(code.co_filename, lines).get((code.co_firstlineno, code.co_name))


Functions: TypeAlias = dict[tuple[int, str], FunctionSyntax]
"""Each function of a file by its first line (a decorator's, as in `co_firstlineno`) and its name."""
_parsed: dict[str, tuple[list[str], Functions]] = {}
"""The functions of some files, with the lines that they were parsed from: `linecache` has another list when it reads a file again."""
_PARSED_MAX = 8


def _functions(file: str, lines: list[str]) -> Functions:
    known = _parsed.get(file)
    if known is None or known[0] is not lines:
        _parsed.pop(file, None)
        if len(_parsed) == _PARSED_MAX:
            del _parsed[next(iter(_parsed))]
        known = _parsed[file] = lines, _functions_in("".join(lines))
    return known[1]


def _functions_in(source: str) -> Functions:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    found: Functions = {}
    for node in walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min(line.lineno for line in [node, *node.decorator_list])
            found[first, node.name] = node
        elif isinstance(node, ast.Lambda):
            found[node.lineno, "<lambda>"] = node
    return found


def walk(*nodes: ast.AST) -> list[ast.AST]:
    """Pieces of syntax with all that is in them, breadth first, but for operators and contexts.

    `ast.walk` takes thrice as long, which is most of what it takes to declare a class.
    """
    found = list(nodes)
    for node in found:  # it grows
        found += children(node)
    return found


def children(node: ast.AST) -> list[ast.AST]:
    """What a piece of syntax is made of, but for operators and contexts."""
    found: list[ast.AST] = []
    for field in _fields_of_nodes(cast(Hashable, type(node))):
        part = getattr(node, field, None)
        if isinstance(part, list):
            found += [each for each in part if isinstance(each, ast.AST)]
        elif isinstance(part, ast.AST):
            found.append(part)
    return found


@functools.cache
def _fields_of_nodes(kind: Any) -> tuple[str, ...]:
    """The fields that are looked into; most nodes are names, attributes and constants, which have none or one."""
    if kind in (ast.Name, ast.Constant):
        return ()
    return tuple(field for field in kind._fields if field not in _WITHOUT_NODES)


_WITHOUT_NODES = frozenset(
    {
        *("arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "level"),
        *("module", "op", "ops", "rest", "simple", "type_comment"),
    }
)


def update_digest(digest: Hash, function: FunctionType) -> None:
    """Adds a function's parameters and body to a digest, without its docstring (design 7)."""
    node = syntax(function)
    if node is None:
        parts = [*_code_parts(function.__code__, function.__doc__)]
    else:
        parts = []
        _add_parts([node.args, _returns(node), _body(node)], parts)
    framed = bytearray()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        framed += len(data).to_bytes(4, "little")
        framed += data
    digest.update(framed)


def _returns(node: FunctionSyntax) -> ast.expr | None:
    return None if isinstance(node, ast.Lambda) else node.returns


def _body(node: ast.AST) -> list[ast.stmt] | ast.expr:
    """A function's or class's body without the docstring."""
    if isinstance(node, ast.Lambda):
        return node.body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return node.body if ast.get_docstring(node, clean=False) is None else node.body[1:]


def _add_parts(value: object, parts: list[str]) -> None:
    """A tree in prefix order.

    Fields that are empty are left out: versions of Python differ in those that they have
    (`type_params` came with 3.12), and members may run different versions.
    """
    if isinstance(value, ast.AST):
        parts.append(f"({type(value).__name__}")
        for field in value._fields:
            child = getattr(value, field, None)
            if field == "body" and isinstance(
                value, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
            ):
                child = _body(value)
            if child is not None and child != []:
                parts.append(field)
                _add_parts(child, parts)
        parts.append(")")
    elif isinstance(value, list):
        parts.append("[")
        for item in value:
            _add_parts(item, parts)
        parts.append("]")
    else:
        parts.append(repr(value))


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
