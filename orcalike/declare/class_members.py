"""The members of a shared class: which are operations, and whether the class may be shared."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cached_property, partialmethod, singledispatchmethod
from types import CodeType, FunctionType
from typing import Any, Generic, Protocol

from orcalike.declare.forbidden_names import canonical_name, reason_against
from orcalike.declare.marks import is_invariant, is_local
from orcalike.declare.outside_names import is_the_programs
from orcalike.declare.subject import CONSTRUCTORS, Subject, finding, method_subject
from orcalike.runtime.arguments import VARARGS, VARKEYWORDS
from orcalike.runtime.operation import Operation
from orcalike.runtime.registered import title_of

_HOOK_FORMS = {
    "member_joined": "def member_joined(self, member)",
    "member_left": "def member_left(self, member)",
    "restore": "@classmethod def restore(cls, state)",
    "snapshot": "def snapshot(self)",
}
_DECORATE = "decorate it with @read, @write or @local"
_CHANGING_PROPERTY = (
    "is a property that changes the object",
    "write a method and decorate it with @write",
)
# What makes a class a class, and is not there for its objects' users.
_NO_OPERATIONS = frozenset(
    {
        *("__init__", "__repr__", "__init_subclass__", "__class_getitem__", "__subclasshook__"),
        *("__annotate__", "__annotate_func__", "__post_init__"),
    }
)
_PLAIN_BASES: frozenset[object] = frozenset({object, Generic, Protocol})
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that Python code made


class Members:
    """What a class offers, its bases included, each name as `obj.name` finds it."""

    def __init__(self, cls: type[Any]) -> None:
        self.cls = cls
        self.found: dict[str, tuple[type[Any], Any]] = {}
        for origin in cls.__mro__:
            if origin not in _PLAIN_BASES and origin.__module__ != "abc":
                for name, value in vars(origin).items():
                    self.found.setdefault(name, (origin, value))
        self.operations = {
            name: (origin, operation)
            for name, (origin, value) in sorted(self.found.items())
            if (operation := _operation_in(value)) is not None
        }
        self.hooks = [name for name in _HOOK_FORMS if name in self.found]
        self.invariants: dict[str, FunctionType] = {
            name: value
            for name, (_, value) in sorted(self.found.items())
            if isinstance(value, FunctionType) and is_invariant(value)
        }
        init = self.found.get("__init__", (object, None))[1]
        self.init: FunctionType | None = init if isinstance(init, FunctionType) else None

    def label(self, name: str) -> str:
        return f"{title_of(self.cls)}.{name}"

    def problems(self) -> Iterator[str]:
        """What is wrong with the class, whatever its functions do."""
        builtin = [base for base in self.cls.__mro__ if _is_builtin(base)]
        if builtin:
            yield (
                f"{_place(self.cls)}: {title_of(self.cls)} derives from {builtin[0].__name__}, whose "
                "methods would change it past the order; keep one in an attribute"
            )
            return
        if issubclass(self.cls, Enum):
            yield (
                f"{_place(self.cls)}: {title_of(self.cls)} is an enum, whose members are constants; "
                "write @register, with which they travel as arguments"
            )
            return
        for name, (_, value) in self.found.items():
            if name in _HOOK_FORMS:
                yield from self._hook_problems(name, value)
            elif name not in self.operations:
                yield from self._member_problems(name, value)
        for name, (_, operation) in self.operations.items():
            yield from self._operation_problems(name, operation)
        for name, function in self.invariants.items():
            code = function.__code__
            if name in _HOOK_FORMS or name in _NO_OPERATIONS:
                what = "is called by orcalike or Python itself, and is no invariant"
                yield finding(function, self.label(name), what, "leave @invariant out")
            elif code.co_argcount != 1 or code.co_kwonlyargcount:
                what = "is an invariant, which is called with the object alone"
                yield finding(function, self.label(name), what, f"write `def {name}(self)`")
        for name, factory in self._factories():
            reason = reason_against(canonical_name(factory))
            if reason is not None:
                what = f"is made by {canonical_name(factory)}, {reason.why}"
                yield f"{_place(self.cls)}: {self.label(name)} {what}; {reason.remedy}"
        if ("snapshot" in self.hooks) != ("restore" in self.hooks):
            yield (
                f"{_place(self.cls)}: {title_of(self.cls)} has one of snapshot and restore; "
                "write both, or leave both out"
            )

    def _factories(self) -> Iterator[tuple[str, object]]:
        """What makes the values of a dataclass's fields, by the names of the fields."""
        fields = getattr(self.cls, "__dataclass_fields__", {})
        for name, field in fields.items():
            if callable(field.default_factory):
                yield name, field.default_factory

    def _member_problems(self, name: str, value: object) -> Iterator[str]:
        """A public method, property or dunder that is not declared, or that hides an operation."""
        label = self.label(name)
        functions = functions_of(value)
        public = _is_public(name)
        if name == "__new__" and functions and _takes_more(functions[0]):
            what = "is called with the class alone, as the object of a joiner has no arguments"
            remedy = "write `def __new__(cls, *args, **kwargs)`, or leave it out"
            yield finding(functions[0], label, what, remedy)
        hidden = _hidden_operation(value)
        if hidden is not None:
            what, remedy = _how_it_is_hidden(value, hidden.kind)
            yield finding(hidden.function, label, what, remedy)
        elif any(_operation_in(vars(base).get(name)) is not None for base in self.cls.__mro__):
            what = "hides an operation of a base and is none"
            yield f"{self._where(functions)}: {label} {what}; decorate it as it is in the base"
        elif public and isinstance(value, cached_property | partialmethod | singledispatchmethod):
            what = f"is a {type(value).__name__}, which would change the object past the order"
            yield f"{self._where(functions)}: {label} {what}; write a method and {_DECORATE}"
        elif public and functions and not all(map(self._is_exempt, functions)):
            above = "write @property above @read, or @property above @local"
            remedy = above if isinstance(value, property) else _DECORATE
            yield finding(functions[0], label, "is public, and no operation", remedy)

    def _is_exempt(self, function: FunctionType) -> bool:
        """Whether a public function needs no decorator: `@local`, a guard, or a dataclass's."""
        return (
            is_local(function)
            or is_invariant(function)
            or any(operation.guard is function for _, operation in self.operations.values())
            or function.__code__.co_qualname.startswith("__create_fn__")
            or function.__module__ in ("dataclasses", "functools")
        )

    def _where(self, functions: list[FunctionType]) -> str:
        if not functions:
            return _place(self.cls)
        code = functions[0].__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    def _operation_problems(self, name: str, operation: Operation[Any, ..., Any]) -> Iterator[str]:
        function = operation.function
        label = self.label(name)
        value = self.found[name][1]
        if name in _HOOK_FORMS or name in _NO_OPERATIONS:
            what = f"is called by orcalike or Python itself, and is no {operation.kind}"
            yield finding(function, label, what, f"leave @{operation.kind} out")
        elif name != _mangled(function.__name__, self.found[name][0]):
            what = f"is {function.__name__} under a second name"
            yield finding(function, label, what, "write a method of its own")
        if function.__code__.co_argcount == 0:
            yield finding(function, label, "has no `self`", _remedy_for_self(function))
        if isinstance(value, property) and (
            operation.kind == "write" or value.fset is not None or value.fdel is not None
        ):
            yield finding(function, label, *_CHANGING_PROPERTY)
        for base in self.cls.__mro__:
            above = _operation_in(vars(base).get(name))
            if above is not None and above.kind != operation.kind:
                what = f"is a {operation.kind}, and overrides the {above.kind} of {title_of(base)}"
                yield finding(function, label, what, f"declare it @{above.kind}")
        if operation.guard is not None:
            yield from guard_problems(function, operation.guard, f"the guard of {label}")

    def _hook_problems(self, name: str, value: object) -> Iterator[str]:
        """A hook is called by orcalike, which must know how."""
        if name in self.operations:
            return  # reported with the operations
        functions = functions_of(value)
        form = _HOOK_FORMS[name]
        if (
            not functions
            or isinstance(value, classmethod) != form.startswith("@classmethod")
            or functions[0].__code__.co_argcount != form.count(",") + 1
        ):
            what = "is a hook that orcalike calls in another way"
            yield f"{self._where(functions)}: {self.label(name)} {what}; write `{form}`"

    def subjects(self) -> Iterator[Subject]:
        """The functions that run at each replica, with the rules for each."""
        cls = self.cls
        for name, (origin, operation) in self.operations.items():
            reads = operation.kind == "read"
            yield method_subject(cls, origin, operation.function, self.label(name), pure=reads)
            if operation.guard is not None:
                label = f"the guard of {self.label(name)}"
                guard = operation.guard
                yield method_subject(cls, origin, guard, label, pure=True, guard=True)
        for name, factory in self._factories():
            if isinstance(factory, FunctionType) and is_the_programs(factory.__code__.co_filename):
                label = f"what makes {self.label(name)}"
                yield Subject(factory, label, pure=False, owned=frozenset())
        for name, function in self._plain_functions():
            pure = name == "snapshot" or name in self.invariants
            yield method_subject(cls, self.found[name][0], function, self.label(name), pure=pure)

    def functions(self) -> list[FunctionType]:
        """All that decides what a replica does, in an order that is the same at each member."""
        functions: list[FunctionType] = []
        for _, operation in self.operations.values():
            functions.append(operation.function)
            if operation.guard is not None:
                functions.append(operation.guard)
        functions.extend(function for _, function in self._plain_functions())
        return functions

    def _plain_functions(self) -> Iterator[tuple[str, FunctionType]]:
        """The constructors, the hooks and the invariants."""
        for name in (*CONSTRUCTORS, *self.hooks, *self.invariants):
            value = self.found.get(name, (object, None))[1]
            function = value.__func__ if isinstance(value, classmethod) else value
            if isinstance(function, FunctionType):
                yield name, function

    def take_over(self) -> tuple[Operation[Any, ..., Any], ...]:
        """Gives the class an operation of its own for each that it inherits, and returns all.

        An operation knows its class and its place there, so a subclass cannot use its base's.
        """
        for name, (origin, operation) in self.operations.items():
            if origin is not self.cls or operation.info is not None:
                own = _copy(operation)
                self.operations[name] = (self.cls, own)
                value = self.found[name][1]
                is_property = isinstance(value, property)
                setattr(self.cls, name, property(own, doc=value.__doc__) if is_property else own)
        return tuple(operation for _, operation in self.operations.values())


def functions_of(value: object) -> list[FunctionType]:
    """The plain functions behind a class attribute: none behind an operation, or behind data."""
    match value:
        case FunctionType():
            return [value]
        case staticmethod() | classmethod():
            return functions_of(value.__func__)
        case property():
            accessors = (value.fget, value.fset, value.fdel)
            return [function for accessor in accessors for function in functions_of(accessor)]
        case cached_property():
            return functions_of(value.func)
        case type() | Operation():
            return []
    return functions_of(getattr(value, "__wrapped__", None)) if callable(value) else []


def guard_problems(
    function: FunctionType, guard: FunctionType, label: str, *, method: bool = True
) -> Iterator[str]:
    """A guard is called with the operation's own arguments, and so has its parameters."""
    if _parameters(guard, method) != _parameters(function, method):
        listed = ", ".join(_names(function.__code__))
        what = "has other parameters or defaults than its operation"
        yield finding(guard, label, what, f"give it the same: ({listed})")


def _parameters(function: FunctionType, method: bool) -> tuple[object, ...]:
    """What two functions share when the same calls fit both; the name of `self` is free."""
    code = function.__code__
    return (
        _names(code)[1 if method else 0 :],
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        code.co_flags & (VARARGS | VARKEYWORDS),
        repr(function.__defaults__),
        repr(function.__kwdefaults__),
    )


def _takes_more(function: FunctionType) -> bool:
    """Whether it cannot be called with one argument."""
    code = function.__code__
    required = code.co_argcount - len(function.__defaults__ or ())
    return required > 1 or code.co_kwonlyargcount > len(function.__kwdefaults__ or {})


def _names(code: CodeType) -> tuple[str, ...]:
    """The names of a function's parameters, as the compiler orders them."""
    rest = bool(code.co_flags & VARARGS) + bool(code.co_flags & VARKEYWORDS)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + rest]


def _operation_in(value: object) -> Operation[Any, ..., Any] | None:
    """The operation that a class attribute is, or that a property reads with."""
    inner: object = value.fget if isinstance(value, property) else value
    return inner if isinstance(inner, Operation) else None


def _hidden_operation(value: object) -> Operation[Any, ..., Any] | None:
    """The operation that something else stands before, so that it would not be called as one."""
    match value:
        case property():
            inner = [value.fset, value.fdel]
        case staticmethod() | classmethod():
            inner = [value.__func__]
        case FunctionType() if not is_local(value):
            inner = [getattr(value, "__wrapped__", None)]  # as functools.wraps has it
        case _:
            inner = []
    for each in inner:
        found = each if isinstance(each, Operation) else _hidden_operation(each)
        if found is not None:
            return found
    return None


def _how_it_is_hidden(value: object, kind: str) -> tuple[str, str]:
    """What is wrong with a member that hides an operation, and the remedy."""
    if isinstance(value, property):
        return _CHANGING_PROPERTY
    if isinstance(value, staticmethod | classmethod):
        what = f"is a {kind} and a {type(value).__name__}, which has no object to work on"
        return what, f"leave one of them out, or write @local for @{kind}"
    return f"is a {kind} below another decorator", f"write @{kind} above all others"


def _remedy_for_self(function: FunctionType) -> str:
    """What to do about an operation whose function has no first parameter."""
    if hasattr(function, "__wrapped__"):
        return "a decorator below has replaced it: give the function that it returns a `self`, too"
    return "give it one, or write @local and @staticmethod"


def _is_public(name: str) -> bool:
    if name.startswith("__") and name.endswith("__"):
        return name not in _NO_OPERATIONS
    return not name.startswith("_")


def _is_builtin(cls: type[Any]) -> bool:
    return cls is not object and not cls.__flags__ & _HEAP_TYPE


def _mangled(name: str, cls: type[Any]) -> str:
    """A private name as it stands in the class."""
    if name.startswith("__") and not name.endswith("__"):
        return f"_{cls.__name__.lstrip('_')}{name}"
    return name


def _place(cls: type[Any]) -> str:
    """File and line of a class, as far as Python knows them."""
    import inspect  # not at the top: most classes are right, and it takes long

    try:
        return f"{inspect.getsourcefile(cls)}:{inspect.getsourcelines(cls)[1]}"
    except (OSError, TypeError):
        return cls.__module__


def _copy(operation: Operation[Any, ..., Any]) -> Operation[Any, ..., Any]:
    own: Operation[Any, ..., Any] = Operation(
        operation.function,
        operation.kind,
        popup=operation.popup,
        undo=operation.undo,
        resilience=operation.resilience,
    )
    if operation.guard is not None:
        own.when(operation.guard)
    return own
