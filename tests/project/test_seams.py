"""The runtime's parts say what they need of each other: no seam is `Any` (ADR-17)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from orcalike.runtime.call import Call
    from orcalike.runtime.calling import Calling
    from orcalike.runtime.degrees import Counting
    from orcalike.runtime.dispatch import Runtime
    from orcalike.runtime.left import Leaving
    from orcalike.runtime.receipts import Acknowledging
    from orcalike.runtime.room import Filling
    from orcalike.runtime.sender import Sender
    from orcalike.runtime.under_way import Sending

    def fits(
        runtime: Runtime, sender: Sender
    ) -> tuple[Calling[Call], Counting, Leaving, Acknowledging, Sending, Filling]:
        """Parts that are made in Cython get what their stubs name: a type checker looks at it here."""
        return runtime, runtime, runtime, runtime, runtime, sender


ROOT = Path(__file__).parents[2]
PARTS = {
    "runtime",
    "sender",
    "manager",
    "room",
    "session",
    "stack",
    "operation",
    "replica",
    "invocation",
}
UNTYPED = {"Any", "object"}
SEAMED = [
    path
    for folder in ("runtime", "transport", "orcalike/session")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".pyi")
]


def untyped_parts(source: str) -> Iterator[str]:
    """The parameters, attributes and results with a part's name that are `Any`, `object`, or nothing."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.arg(arg=name, annotation=annotation):
                pass
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
                annotation = node.annotation
            case ast.FunctionDef(name=name, returns=annotation):
                pass
            case _:
                continue
        if name.lstrip("_") in PARTS and says_nothing(annotation):
            yield f"line {node.lineno}: {name}"


def says_nothing(annotation: ast.expr | None) -> bool:
    """Whether it is `Any`, `object`, one of them or None, or not there."""
    match annotation:
        case None:
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return name in UNTYPED
        case ast.BinOp(left=left, right=right):
            return says_nothing(left) or says_nothing(right)
    return False


@pytest.mark.parametrize("path", SEAMED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_parts_are_typed(path: Path) -> None:
    assert list(untyped_parts(path.read_text())) == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def f(runtime: Any, sender: object, *, stack): ...", 3),
        ("class A:\n    _runtime: Any\n    def room(self) -> typing.Any | None: ...", 2),
        ("def f(runtime: Delivering, value: Any, session: Session | None) -> Any: ...", 0),
    ],
)
def test_untyped_parts_are_found(source: str, count: int) -> None:
    assert len(list(untyped_parts(source))) == count
