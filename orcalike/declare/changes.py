"""What an operation changes: the object's own attributes in a write, nothing in a read or guard."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable

from orcalike.declare.ast_names import calls, root
from orcalike.declare.names import Names
from orcalike.declare.outside_names import CHANGING_METHODS
from orcalike.declare.set_expressions import attributes_assigned
from orcalike.declare.subject import Subject

CONTAINERS = (list, dict, set, bytearray, deque)
CHANGE_FIRST_ARGUMENT = frozenset(
    {
        *(f"_heapq.{name}" for name in ("heapify", "heappop", "heappush", "heappushpop")),
        *("_heapq.heapreplace", "_bisect.insort_left", "_bisect.insort_right"),
        *("builtins.setattr", "builtins.delattr"),
        *(
            f"{owner}.{name}"
            for owner in ("builtins.list", "builtins.dict", "builtins.set", "collections.deque")
            for name in CHANGING_METHODS
        ),
    }
)
KEEP = "keep it in an attribute of the object, or pass it as an argument"
LOOKS = "and reads and guards change nothing"
WRITE = "do it in a @write"
THAW = "leave frozen=True out"


class Changes:
    """The changes in one function; `report(node, what, remedy)` is called for each that is wrong."""

    def __init__(
        self, subject: Subject, names: Names, report: Callable[[ast.AST, str, str], None]
    ) -> None:
        self._subject = subject
        self._names = names
        self._report = report

    def check(self, node: ast.expr, what: str) -> None:
        """A change of something that a name with dots and brackets leads to."""
        base, through = root(node)
        if not isinstance(base, ast.Name):
            if isinstance(base, ast.Call) and calls(base, "type"):
                self._report(node, f"{what}, which belongs to the class", KEEP)
        elif self._names.is_owned(base.id):
            if "__class__" in through or self._is_of_class(node, through):
                self._report(node, f"{what}, which belongs to the class", KEEP)
            elif self._subject.pure:
                self._report(node, f"{what}, {LOOKS}", WRITE)
            elif self._is_frozen(node, through):
                self._report(node, f"{what}, and its class is a frozen dataclass", THAW)
        elif base.id in self._names.parts:
            if self._subject.pure:
                self._report(node, f"{what}, which lies in the object, {LOOKS}", WRITE)
        elif not self._names.is_local(base.id) or (
            isinstance((self._names.resolve_alias(base.id) or ("", None))[1], CONTAINERS)
        ):
            self._report(node, f"{what}, which does not belong to the object", KEEP)

    def _is_frozen(self, node: ast.expr, through: list[str]) -> bool:
        """Whether an attribute of the object itself is assigned or deleted, which its class refuses."""
        parameters = getattr(self._subject.cls, "__dataclass_params__", None)
        assigned = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        own = not through or (len(through) == 1 and assigned)
        return own and parameters is not None and bool(parameters.frozen)

    def _is_of_class(self, node: ast.expr, through: list[str]) -> bool:
        """Whether what changes is a container that all objects of the class have in common."""
        cls = self._subject.cls
        if cls is None or not through or through[-1] in attributes_assigned(cls):
            return False
        assigned = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        if assigned and len(through) == 1:
            return False  # an attribute of its own from here on
        for owner in cls.__mro__:
            if through[-1] in vars(owner):
                return isinstance(vars(owner)[through[-1]], CONTAINERS)
        return False

    def check_call(self, function: ast.Attribute) -> None:
        """A call of a method that changes what it belongs to, as `append`."""
        base, through = root(function.value)
        if isinstance(base, ast.Call) and calls(base, "type"):
            self.check(function.value, f"calls {ast.unparse(function)}()")
        if not isinstance(base, ast.Name):
            return
        passed = self._subject.helper and self._subject.cls is None
        if self._names.is_owned(base.id) and not through and not passed:
            return  # a method of the class itself
        target = self._names.resolve(function.value)
        is_here = self._names.is_part(base) or self._is_the_class(base.id)
        if is_here or (target is not None and isinstance(target[1], CONTAINERS)):
            self.check(function.value, f"calls {ast.unparse(function)}()")

    def _is_the_class(self, name: str) -> bool:
        """Whether a name is that of the class itself, which does not exist yet."""
        cls = self._subject.cls
        return cls is not None and name == cls.__name__ and not self._names.is_local(name)
