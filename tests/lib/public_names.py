"""The public names of orcalike with their signatures, as text: one line for each.

`python -m tests.lib.public_names` writes `public_names.txt`, with which a test compares them. Look
at the difference before it is committed: programs are written against these lines.
"""

from __future__ import annotations

import ast
import inspect
import sys
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType, UnionType
from typing import Any, ForwardRef

import orcalike
from orcalike import messages, objects, testing
from orcalike.testing import plugin
from tests.lib.command_lines import ask_nothing
from tests.lib.guest_modules import GUESTS

STORED = Path(__file__).with_name("public_names.txt")
MODULES = (orcalike, messages, objects, testing, *GUESTS)
BODIES = ("function", "fget", "__func__", "steps", "ready")
"""Where descriptors keep the function that they are made of."""


def public_names() -> list[str]:
    """All of them, sorted."""
    lines = [line for module in MODULES for name in module.__all__ for line in _of(module, name)]
    fixture = type(plugin.orcalike_group)
    lines += [
        f"{plugin.__name__}.{name}: fixture"
        for name, value in vars(plugin).items()
        if isinstance(value, fixture) and not name.startswith("_")
    ]
    return sorted(lines, key=lambda line: line.removeprefix("class "))


def _of(module: ModuleType, name: str) -> Iterator[str]:
    path, value = f"{module.__name__}.{name}", getattr(module, name)
    if not isinstance(value, type):
        yield f"{path}{_signature(value)}" if callable(value) else f"{path}: {_kind(value)}"
    elif _is_compiled(value):
        yield from _of_stub(path, value)
    else:
        yield from _of_class(path, value)


def _kind(value: object) -> str:
    if isinstance(value, UnionType):
        return " | ".join(each.__name__ for each in value.__args__)
    return repr(value) if isinstance(value, int) else type(value).__name__


def _is_compiled(cls: type) -> bool:
    return str(getattr(sys.modules[cls.__module__], "__file__", "")).endswith(".so")


def _of_class(path: str, cls: type) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in cls.__bases__)
    # Those of C, as of exceptions, have a signature in some versions of Python only.
    own_init = isinstance(cls.__init__, FunctionType)  # type: ignore[misc]
    yield f"class {path}({bases}){_signature(cls) if own_init else ''}"
    own = [base for base in cls.__mro__ if base.__module__.startswith("orcalike")]
    hints = {name for base in own for name in inspect.get_annotations(base)}
    for name in sorted({name for base in own for name in vars(base)} | hints):
        if name.startswith("_") and name != "__call__":
            continue
        value = inspect.getattr_static(cls, name, None)
        function = _function(value)
        if function is None:
            yield f"{path}.{name}: attribute"
        elif isinstance(value, property):
            ways = [*_of_returned(f"{path}.{name}", function)]
            returned = "" if ways else f" -> {function.__annotations__.get('return')}"
            yield f"{path}.{name}: property{returned}"
            yield from ways
        else:
            yield f"{path}.{name}{_signature(function)}"


def _of_returned(path: str, function: FunctionType) -> Iterator[str]:
    """What can be called in several ways: `group.share`, and its `aio` and `nowait`."""
    returned = typing.get_type_hints(function).get("return")
    returned = typing.get_origin(returned) or returned
    if isinstance(returned, type) and "__call__" in dir(returned) and not _is_compiled(returned):
        for name in ("__call__", "aio", "nowait"):
            called = getattr(returned, name, None)
            if called is not None:
                yield f"{path}.{name}{_signature(called)}"


def _function(value: object) -> FunctionType | None:
    """The function of a method, property, operation or another descriptor; None if it has none."""
    for body in BODIES:
        if isinstance(value, FunctionType):
            break
        value = getattr(value, body, value)
    return value if isinstance(value, FunctionType) else None


@dataclass(frozen=True)
class _Text:
    """An annotation as it is written: `inspect` would show the quotes of a string."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _signature(value: Any) -> str:
    signature = inspect.signature(value)
    parameters = [
        each.replace(annotation=_plain(each.annotation)) for each in signature.parameters.values()
    ]
    returns = _plain(signature.return_annotation)
    return str(signature.replace(parameters=parameters, return_annotation=returns))


def _plain(annotation: object) -> object:
    if isinstance(annotation, ForwardRef):
        return _Text(annotation.__forward_arg__)
    return _Text(annotation) if isinstance(annotation, str) else annotation


def _of_stub(path: str, cls: type) -> Iterator[str]:
    """A compiled class, by its stub, which other tests compare with the binary."""
    module = sys.modules[cls.__module__]
    stub = Path(module.__file__ or "").parent / f"{module.__name__.rpartition('.')[2]}.pyi"
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    (node,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == cls.__name__)
    yield f"class {path}({', '.join(map(ast.unparse, node.bases))})"
    for child in node.body:
        if isinstance(child, ast.FunctionDef) and child.returns is not None:
            yield f"{path}.{child.name}({ast.unparse(child.args)}) -> {ast.unparse(child.returns)}"
        elif isinstance(child, ast.AnnAssign):
            yield f"{path}.{ast.unparse(child)}"


if __name__ == "__main__":
    ask_nothing("tests.lib.public_names", __doc__)
    STORED.write_text("\n".join(public_names()) + "\n", encoding="utf-8")
