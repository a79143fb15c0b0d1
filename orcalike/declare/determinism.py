"""What can be seen in an operation's source before it ever runs (feature D10).

Operations run at each replica, on the thread that received them: they must come to the same
result everywhere, never wait, and touch nothing but the object and their arguments. A run-time
system cannot undo a clock that was read, so what can be recognised is refused when the class is
declared, with file, line and the remedy. Names are resolved through the function's own globals
and closure: `from time import time as t` is recognised, a variable called `time` is not mistaken.

What an operation calls is checked with it: helpers of its class, functions and classes of the
program's own modules. Other code is known by name alone (`forbidden_names`). What has no source (a
prompt, `exec`) is let through, and so is what is reached through an argument or a container. A line
with the comment `# orca: unchecked`, and what it calls, is the programmer's own business.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from orcalike.declare.ast_names import calls
from orcalike.declare.changes import CHANGE_FIRST_ARGUMENT, CONTAINERS, KEEP, LOOKS, WRITE, Changes
from orcalike.declare.forbidden_names import (
    SEEDED,
    WITH_ZONE,
    canonical_name,
    is_harmless,
    reason_against,
)
from orcalike.declare.names import MISSING, Names, name_of
from orcalike.declare.outside_names import (
    CHANGING_METHODS,
    definition,
    is_the_programs,
    unwrapped,
    why_it_changes,
)
from orcalike.declare.set_expressions import Sets, attributes_assigned
from orcalike.declare.set_order import SetOrder
from orcalike.declare.subject import Subject, finding, method_subject
from orcalike.runtime.moment import now
from orcalike.runtime.operation import Operation
from orcalike.runtime.registered import title_of
from orcalike.runtime.source import FunctionSyntax, children, syntax

# inspect's CO_GENERATOR, CO_COROUTINE and CO_ASYNC_GENERATOR, without its import, which takes long.
GENERATOR, COROUTINE, ASYNC_GENERATOR = 0x20, 0x80, 0x200

_UNCHECKED = "# orca: unchecked"
UNKNOWN = ", which is not checked"
GUARD_OF_TIME = (
    "uses orcalike.now(), and is tried after writes of the object, not as time passes: wait for a time "
    "where you call it, or have a write say that it has come"
)


def check(subjects: Iterable[Subject], notes: dict[str, None] | None = None) -> list[str]:
    """All that is wrong with some functions and what they call, one line for each finding.

    What cannot be known goes into `notes`, likewise.
    """
    queue = deque(subjects)
    seen: set[tuple[FunctionType, bool, frozenset[str], bool]] = set()
    found: dict[str, None] = {}
    while queue:
        subject = queue.popleft()
        key = subject.function, subject.pure, subject.owned, subject.guard
        if key in seen:
            continue
        seen.add(key)
        if not subject.known:
            found.update(dict.fromkeys(_shape(subject)))
        node = syntax(subject.function)
        if node is not None:
            visitor = _Visitor(subject, node)
            visitor.visit_function(node)
            found.update(dict.fromkeys(visitor.findings))
            queue.extend(visitor.called)
            if notes is not None:
                notes.update(dict.fromkeys(visitor.notes))
    return list(found)


def _shape(subject: Subject) -> Iterator[str]:
    """What the compiled code alone shows."""
    function = subject.function
    flags = function.__code__.co_flags
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    for default in defaults:
        if isinstance(default, CONTAINERS):
            yield finding(
                function,
                subject.label,
                f"has the default {default!r:.40}, which all calls of one process share",
                "use None, and make a new one in the body",
            )
    if flags & (COROUTINE | ASYNC_GENERATOR):
        yield finding(
            subject.function,
            subject.label,
            "is async, and operations never wait",
            "write it with `def`, and await it where you call it, with `.aio()`",
        )
    elif flags & GENERATOR and not subject.helper:
        yield finding(
            subject.function,
            subject.label,
            "is a generator, which would go on after the operation has ended",
            "return a list",
        )


class _Visitor(ast.NodeVisitor):
    """Walks one function, nested ones included."""

    def __init__(self, subject: Subject, node: FunctionSyntax) -> None:
        self.subject = subject
        self.findings: list[str] = []
        self.notes: list[str] = []
        self.called: list[Subject] = []
        self.names = Names(subject.function, node, subject.owned)
        self.changes = Changes(subject, self.names, self.report)
        sets = Sets(subject.cls, self.names.owned, self.names.assigned)
        self.order = SetOrder(subject, sets, self.report)

    def report(self, node: ast.AST, what: str, remedy: str) -> None:
        if not self.subject.known and not self.is_unchecked(node):
            line = getattr(node, "lineno", 0)
            self.findings.append(
                finding(self.subject.function, self.subject.label, what, remedy, line)
            )

    def note(self, node: ast.AST, what: str) -> None:
        """What the check cannot know, or what is perhaps not meant."""
        if not self.is_unchecked(node) and (what == GUARD_OF_TIME or not self.subject.known):
            line = getattr(node, "lineno", 0)
            file = self.subject.function.__code__.co_filename
            self.notes.append(f"{file}:{line}: {self.subject.label} {what}")

    def is_unchecked(self, node: ast.AST) -> bool:
        file = self.subject.function.__code__.co_filename
        return _UNCHECKED in linecache.getline(file, getattr(node, "lineno", 0))

    def generic_visit(self, node: ast.AST) -> None:
        """Go through what it is made of: of operators and contexts there is nothing to find."""
        for child in children(node):
            self.visit(child)

    # Scopes.

    def visit_function(self, node: FunctionSyntax) -> None:
        """Defaults belong to the scope outside, the body to a new one; annotations never run."""
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        self.names.enter(node)
        for child in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(child)
        self.names.leave()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.report(node, f"defines the coroutine {node.name}", "operations never wait: use `def`")

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit_function(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.target)
            self.visit(node.value)

    def visit_Import(self, node: ast.Import) -> None:
        self.names.note_import(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.names.note_import(node)

    # Names, and what they stand for.

    def check_use(self, node: ast.expr) -> bool:
        """Reports what may not be used; False when the name is the function's own."""
        target = self.names.resolve(node)
        if target is None:
            return False
        path, value = target
        known = value is not MISSING
        if known and is_harmless(value):
            if isinstance(node, ast.Name):
                self.check_global(node, value)
            return True
        reason = reason_against(path)
        if reason is None and known:
            reason = reason_against(canonical_name(value))
        if isinstance(value, ModuleType) and isinstance(node, ast.Name):
            reason = None  # what matters is which of its functions is used
        if self.names.is_alias(node):
            return True  # it is reported where it is assigned
        if path == "builtins.hash" and self.subject.function.__name__ == "__hash__":
            reason = None
        if self.subject.guard and value is now:
            self.note(node, GUARD_OF_TIME)
        if reason is not None:
            text, name = ast.unparse(node), name_of(path, value)
            if text.rpartition(".")[2] != name.rpartition(".")[2]:
                text = f"{text} ({name})"
            self.report(node, f"uses {text}, {reason.why}", reason.remedy)
        else:
            self.follow(node, path, unwrapped(value))
            if isinstance(node, ast.Name):
                self.check_global(node, value)
        return True

    def follow(self, node: ast.expr, path: str, value: object) -> None:
        """Check what is called, or may be, with the function that names it."""
        if isinstance(value, FunctionType):
            if value.__module__ == self._module or is_the_programs(value.__code__.co_filename):
                self.call_helper(node, value, title_of(value))
            elif not _is_known(value.__module__):
                self.note(node, f"uses {path}{UNKNOWN}")
        elif isinstance(value, type) and not hasattr(value, "__orcalike_info__"):
            for name in ("__init__", "__post_init__", "__call__"):
                method = vars(value).get(name)
                if isinstance(method, FunctionType) and (
                    is_the_programs(method.__code__.co_filename)
                ):
                    self.call_helper(node, method, f"{title_of(value)}.{name}")
        elif callable(value) and not _is_known(getattr(value, "__module__", None) or "builtins"):
            self.note(node, f"uses {path}{UNKNOWN}")

    def call_helper(
        self,
        node: ast.expr,
        function: FunctionType,
        name: str,
        owned: frozenset[str] = frozenset(),
    ) -> None:
        label = f"{name}, which {self._label} calls,"
        pure = self.subject.pure
        guard = self.subject.guard
        self.check_too(node, Subject(function, label, pure=pure, owned=owned, guard=guard))

    def check_too(self, node: ast.AST, called: Subject, *, known: bool = False) -> None:
        """A line that is unchecked answers for what it calls as well."""
        if not self.is_unchecked(node):
            self.called.append(called.as_helper(known=known or self.subject.known))

    def check_global(self, node: ast.Name, value: object) -> None:
        """A global that is not the same in each process, or changes there."""
        function = self.subject.function
        if isinstance(value, ModuleType | FunctionType | type) or (
            function.__globals__.get(node.id, MISSING) is not value
        ):
            return
        remedy = "pass it as an argument, or keep it in an attribute of the object"
        for expression in definition(function, node.id):
            reason = self.names.reason_in(expression)
            if reason is not None:
                what = f"uses {node.id}, which is {ast.unparse(expression):.60} in each process"
                self.report(node, what, remedy)
                return
        why = why_it_changes(function, node.id)
        if why is not None:
            self.report(node, f"uses {node.id}, which each process changes: {why}", remedy)
        elif hasattr(type(value), "__next__"):
            what = f"uses {node.id}, an iterator that each process goes through by itself"
            self.report(node, what, remedy)

    @property
    def _module(self) -> str:
        return self.subject.function.__module__

    @property
    def _label(self) -> str:
        """What calls that which is checked next; whatever is between, a guard if there is one."""
        own, _, caller = self.subject.label.partition(", which ")
        return caller.removesuffix(" calls,") if caller and self.subject.guard else own

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.check_use(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.changes.check(node, f"assigns {ast.unparse(node)}")
        elif self.check_use(node):
            return
        elif (found := self.member(node)) is not None:
            self.check_member(node, *found)
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.changes.check(node, f"assigns {ast.unparse(node)}")
        self.generic_visit(node)

    # The object's own methods.

    def member(self, node: ast.Attribute) -> tuple[type[Any], object] | None:
        """The class attribute behind `self.name` or `super().name`, and the class that has it."""
        cls, origin = self.subject.cls, self.subject.origin
        if cls is None or origin is None:
            return None
        if isinstance(node.value, ast.Name) and self.names.is_owned(node.value.id):
            line = cls.__mro__
        elif _is_super(node.value) and origin in cls.__mro__:
            line = cls.__mro__[cls.__mro__.index(origin) + 1 :]
        else:
            return None
        name = node.attr
        if name.startswith("__") and not name.endswith("__"):
            name = f"_{origin.__name__.lstrip('_')}{name}"
        return next(((owner, vars(owner)[name]) for owner in line if name in vars(owner)), None)

    def check_member(self, node: ast.Attribute, origin: type[Any], value: object) -> None:
        if isinstance(value, property):
            value = value.fget
        static = isinstance(value, staticmethod)
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, Operation):
            if self.subject.pure and value.kind == "write":
                self.report(node, f"uses the write {node.attr}, {LOOKS}", WRITE)
            if origin is not self.subject.cls:
                # An operation of a base is checked here: the base need not be shared itself.
                pure = self.subject.pure or value.kind == "read"
                self.call(node, origin, value.function, pure=pure)
            elif self.subject.guard and value.kind == "read":
                self.call(node, origin, value.function, pure=True, known=True)
        elif isinstance(value, FunctionType) and static:
            self.call(node, origin, value, pure=self.subject.pure, owned=frozenset())
        elif isinstance(value, FunctionType):
            self.call(node, origin, value, pure=self.subject.pure)

    def call(
        self,
        node: ast.Attribute,
        origin: type[Any],
        function: FunctionType,
        *,
        pure: bool,
        owned: frozenset[str] | None = None,
        known: bool = False,
    ) -> None:
        assert self.subject.cls is not None
        label = f"{title_of(origin)}.{node.attr}, which {self._label} calls,"
        guard = self.subject.guard
        subject = method_subject(self.subject.cls, origin, function, label, pure=pure, guard=guard)
        owned = subject.owned if owned is None else owned
        self.check_too(node, subject.owning(owned), known=known)

    # Changes.

    def visit_Global(self, node: ast.Global) -> None:
        self._shared_name(node, node.names, "global")

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        outside = [name for name in node.names if self.names.is_outside(name)]
        self._shared_name(node, outside, "nonlocal")

    def _shared_name(self, node: ast.stmt, names: list[str], kind: str) -> None:
        if names:
            self.report(node, f"assigns the {kind} {', '.join(names)}", KEEP)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        target = self.names.resolve(function)
        name = "" if target is None else name_of(*target)
        with_zone = name == WITH_ZONE and len(node.args) + len(node.keywords) > 1
        if (name in SEEDED and (node.args or node.keywords)) or with_zone:
            for child in [*node.args, *(keyword.value for keyword in node.keywords)]:
                self.visit(child)
            return
        unbound = target is not None and target[1] is not MISSING  # `list.append`, not `LOG.append`
        if unbound and name in CHANGE_FIRST_ARGUMENT and node.args:
            self.changes.check(node.args[0], f"calls {ast.unparse(node)}")
        elif name == "builtins.getattr" and len(node.args) > 1:
            self._check_getattr(node)
        elif isinstance(function, ast.Attribute) and function.attr in CHANGING_METHODS:
            self.changes.check_call(function)
        self._check_stored(function)
        self._check_passed(node, target)
        self.order.check_call(node, name)
        self.generic_visit(node)

    def _check_getattr(self, node: ast.Call) -> None:
        """`getattr(time, "time")` is `time.time`."""
        match node.args[1]:
            case ast.Constant(value=str(name)) if name.isidentifier():
                attribute = ast.Attribute(value=node.args[0], attr=name, ctx=ast.Load())
                self.check_use(ast.copy_location(attribute, node))
            case _:
                found = self.names.resolve(node.args[0])
                if found is not None and isinstance(found[1], ModuleType):
                    self.note(node, f"uses {ast.unparse(node)}{UNKNOWN}")

    def _check_stored(self, function: ast.expr) -> None:
        """`self.key(...)` if the class has no such method."""
        if (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and self.names.is_owned(function.value.id)
            and self.subject.cls is not None
            and self.subject.origin is not None
            and not hasattr(self.subject.cls, "__getattr__")
            and self.member(function) is None
            and function.attr in attributes_assigned(self.subject.cls)
        ):
            what = f"calls {ast.unparse(function)}, which is kept in the object and cannot travel"
            self.report(function, what, "write a method, and keep which one as a text")

    def _check_passed(self, node: ast.Call, target: tuple[str, object] | None) -> None:
        """A helper that gets a part of the object may not change it in a read."""
        function = None if target is None else unwrapped(target[1])
        if not self.subject.pure or not isinstance(function, FunctionType):
            return
        if not is_the_programs(function.__code__.co_filename):
            return
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        given = {*zip(names, node.args, strict=False)}
        given |= {(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg}
        owned = {n for n, value in given if self.names.is_part(value)}
        if owned:
            self.call_helper(node, function, title_of(function), frozenset(owned))

    # The order of sets.

    def visit_For(self, node: ast.For) -> None:
        self.order.check(node, node.iter)
        self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> None:
        self.order.check(node, node.value)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node, node.generators)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node, node.generators)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node, node.generators)

    def _comprehension(self, node: ast.expr, generators: list[ast.comprehension]) -> None:
        for generator in generators:
            self.order.check(node, generator.iter)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        own = self.names.depth == 1 and not self.subject.helper
        if own and isinstance(node.value, ast.GeneratorExp):
            what = "returns a generator, which would go on after the operation has ended"
            self.report(node, what, "return a list")
        self.generic_visit(node)


def _is_known(module: str) -> bool:
    """Whether a module's functions are known by name: the standard library's, and orcalike's."""
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top == "orcalike" or top == "__main__"


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and not node.args and calls(node, "super")
