"""Which expressions of a function are sets, and which attributes its class gives to each object."""

from __future__ import annotations

import ast
import functools
from collections.abc import Hashable, Iterator, Mapping
from types import FunctionType
from typing import Any, cast

from orcalike.declare.subject import CONSTRUCTORS
from orcalike.runtime.source import syntax, walk

_MAKE_SETS = frozenset({"set", "frozenset"})
_GIVE_SETS = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})


class Sets:
    """What is a set in one function, as far as its source and its class's constructor show."""

    def __init__(
        self,
        cls: type[Any] | None,
        owned: frozenset[str],
        assigned: Mapping[str, list[ast.expr | None]],
    ) -> None:
        self._attributes = set_attributes(cls) if cls is not None else frozenset()
        self._owned = owned
        self._assigned = assigned

    def is_set(self, node: ast.expr, depth: int = 0) -> bool:
        """Whether an expression is a set for certain."""
        if depth > 8:
            return False
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Call(func=ast.Name(id=name)):
                return name in _MAKE_SETS
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                return name in _GIVE_SETS and self.is_set(value, depth + 1)
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor()):
                return self.is_set(left, depth + 1)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                return name in self._owned and attribute in self._attributes
            case ast.Name(id=name):
                values = self._assigned.get(name, [])
                return bool(values) and all(
                    value is not None and self.is_set(value, depth + 1) for value in values
                )
        return False


def _constructor(cls: type[Any]) -> Iterator[tuple[str, ast.expr | None, ast.expr | None]]:
    """(attribute, annotation, value) for what the constructors of a class assign to `self`."""
    for init in (vars(owner).get(name) for owner in cls.__mro__ for name in CONSTRUCTORS):
        node = syntax(init) if isinstance(init, FunctionType) else None
        if node is None or not node.args.args:
            continue
        me = node.args.args[0].arg
        for each in walk(node):
            match each:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        for part in walk(target):
                            if _is_of(part, me):
                                yield part.attr, None, value  # type: ignore[attr-defined]
                case ast.AnnAssign(target=target, annotation=annotation) if _is_of(target, me):
                    yield target.attr, annotation, each.value  # type: ignore[union-attr]


def _is_of(node: ast.AST, me: str) -> bool:
    return (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == me
    )


def attributes_assigned(cls: type[Any]) -> frozenset[str]:
    """The attributes that a constructor gives to each object, and a dataclass's fields."""
    return _attributes_assigned(cast(Hashable, cls))


@functools.lru_cache(maxsize=256)
def _attributes_assigned(cls: Any) -> frozenset[str]:
    names = {name for name, _, _ in _constructor(cls)}
    fields: Mapping[str, object] = getattr(cls, "__dataclass_fields__", {})
    return frozenset(names | set(fields))


def set_attributes(cls: type[Any]) -> frozenset[str]:
    """Those of them that are sets."""
    return _set_attributes(cast(Hashable, cls))


@functools.lru_cache(maxsize=256)
def _set_attributes(cls: Any) -> frozenset[str]:
    found = set()
    for name, annotation, value in _constructor(cls):
        text = "" if annotation is None else ast.unparse(annotation).partition("[")[0]
        made = value is not None and Sets(None, frozenset(), {}).is_set(value)
        if text in _MAKE_SETS or text.endswith(".Set") or made:
            found.add(name)
    return frozenset(found)
