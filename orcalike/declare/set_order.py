"""The order of sets, which differs at each replica: what a write comes to may not depend on it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from orcalike.declare.set_expressions import Sets
from orcalike.declare.subject import Subject

_ORDERLESS = frozenset(
    {
        *(f"builtins.{name}" for name in ("all", "any", "frozenset", "len", "max", "min")),
        *("builtins.set", "builtins.sorted", "builtins.sum", "collections.Counter"),
    }
)
"""What comes to the same whatever the order of the elements is."""
_IN_ORDER = frozenset(
    {
        *(f"builtins.{name}" for name in ("enumerate", "iter", "list", "map", "tuple", "zip")),
        *("collections.deque", "collections.OrderedDict"),
    }
)


class SetOrder:
    """Looks at what goes through a set; `report(node, what, remedy)` is called with what it finds."""

    def __init__(
        self, subject: Subject, sets: Sets, report: Callable[[ast.AST, str, str], None]
    ) -> None:
        self._subject = subject
        self._sets = sets
        self._report = report
        self._orderless: set[ast.AST] = set()
        """Arguments of calls that come to the same in any order."""

    def check_call(self, node: ast.Call, name: str) -> None:
        """What is called, by its `name`, may go through its arguments in their order, or come to the same in any."""
        if name in _ORDERLESS:
            self._orderless.update(node.args)
        elif name in _IN_ORDER or (
            isinstance(node.func, ast.Attribute) and node.func.attr == "join"
        ):
            for arg in node.args[:1]:
                self.check(node, arg)
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "pop" and not node.args:
            self.check(node, node.func.value)

    def check(self, node: ast.AST, over: ast.expr) -> None:
        """What a write comes to may not depend on the order of a set."""
        if not self._subject.pure and node not in self._orderless and self._sets.is_set(over):
            self._report(
                over,
                f"goes through the set {ast.unparse(over)}, whose order differs at each replica",
                "go through sorted(...) of it, or keep a dict",
            )
