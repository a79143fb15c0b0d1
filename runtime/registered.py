"""Enums, dataclasses and NamedTuples that a program lets travel, by the names that it registered them under.

So are functions that other members may have a process started with (`group.fork`): only these. No module of the program is imported on the word of a message.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import Enum, Flag
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, overload
from zlib import crc32

from orcalike.runtime.errors import DeclarationError, Unreadable
from orcalike.runtime.extension_codes import Code
from orcalike.transport.errors import ProtocolError

Registered = TypeVar("Registered", bound=Callable[..., Any])

SAME_SOURCE = "run the same version of the program in all processes"


class Record(NamedTuple):
    """A registered class: its name on the wire and, if it has any, the fields that travel."""

    code: Code
    cls: type[Any]
    name: str
    fields: tuple[str, ...]
    fingerprint: int
    """Of the fields' names: it tells two versions of the class apart."""


by_class: dict[type[Any], Record] = {}
_by_name: dict[str, Record] = {}
CO_COROUTINE = 0x80
"""In the flags of a code object, as `inspect` has it, which takes long to import."""

functions: dict[str, Callable[..., object]] = {}
"""By name: those that `group.fork` may start here."""


@overload
def register(declared: Registered, /) -> Registered: ...
@overload
def register() -> Callable[[Registered], Registered]: ...
def register(declared: Any = None, /) -> Any:
    """Let the values of an enum, a dataclass or a NamedTuple travel, or a function be forked; also a decorator.

    A function of a module can then be started in a process of its own by `group.fork`, as
    `function(group, *args)`, by any member of the program's groups.

    For a class it stands above `@dataclass`. A dataclass arrives as a new object with the same fields: `__init__` and `__post_init__` do
    not run again, and attributes that are no fields stay behind. A class that is defined again
    under the same name takes the place of the first.

    Raises DeclarationError for any other class, and for a dataclass with a `__new__` of its own
    (or from a base such as dict), whose objects cannot be made from their fields; for a function
    that is not a module's own, or a coroutine function.
    """
    return _register if declared is None else _register(declared)


def _register(declared: Registered) -> Registered:
    if isinstance(declared, type):
        _register_class(declared)
    else:
        _register_function(declared)
    return declared


def _register_function(function: Callable[..., object]) -> None:
    if not isinstance(function, FunctionType) or not function.__qualname__.isidentifier():
        raise DeclarationError(
            f"{function!r} cannot be registered: a function that group.fork starts stands in a module, "
            "so that another process finds it there, and in no class and no other function"
        )
    if function.__code__.co_flags & CO_COROUTINE:
        raise DeclarationError(
            f"{import_name(function)} cannot be registered: it is a coroutine function; register a "
            "plain one that runs it, as with asyncio.run"
        )
    functions[import_name(function)] = function


def _register_class(cls: type[Any]) -> None:
    fields: tuple[str, ...] = ()
    if issubclass(cls, Enum):
        code = Code.FLAG if issubclass(cls, Flag) else Code.ENUM
    elif is_named_tuple(cls):
        code = Code.NAMED_TUPLE
        fields = cls._fields
    elif not is_dataclass(cls):
        raise DeclarationError(
            f"{import_name(cls)} cannot be registered: only enums, dataclasses and NamedTuples can; "
            "where it is meant to be a dataclass, register stands above @dataclass"
        )
    elif _maker_of(cls) is not object.__new__:
        raise DeclarationError(
            f"{import_name(cls)} cannot be registered: it has a __new__ of its own or of a base "
            "class; make it a dataclass that derives from plain classes alone"
        )
    else:
        code = Code.DATACLASS
        fields = fields_of(cls)
    record = Record(code, cls, import_name(cls), fields, crc32(",".join(fields).encode()))
    by_class[cls] = _by_name[record.name] = record


def is_named_tuple(cls: type[Any]) -> bool:
    """Whether a class is a NamedTuple, and none that derives from one."""
    return issubclass(cls, tuple) and cls.__bases__ == (tuple,) and hasattr(cls, "_fields")


def _maker_of(cls: type[Any]) -> object:
    return cls.__new__


def is_dataclass(cls: type[Any]) -> bool:
    """Whether a class is a dataclass, as `dataclasses` says."""
    return hasattr(cls, "__dataclass_fields__")


def fields_of(cls: type[Any]) -> tuple[str, ...]:
    """The names of a dataclass's fields."""
    from dataclasses import fields  # a program with a dataclass has imported it, others need not

    return tuple(field.name for field in fields(cls))


def import_name(cls: type[Any] | Callable[..., Any]) -> str:
    """The name of a class or function in all processes, `module:qualified.name`.

    `__main__` counts as the name that the program would have if it were imported; so does
    `__mp_main__`, as which `multiprocessing` imports it into the processes that it starts.
    """
    module = cls.__module__
    if module in ("__main__", "__mp_main__"):
        main = sys.modules[module]
        spec = getattr(main, "__spec__", None)
        file = getattr(main, "__file__", None)
        if spec:
            module = spec.name
        elif file:
            module = os.path.splitext(os.path.basename(file))[0]
    return f"{module}:{cls.__qualname__}"


def title_of(thing: type[Any] | FunctionType) -> str:
    """What messages call a class or function: its name, without that of a function around it."""
    return thing.__qualname__.rpartition("<locals>.")[2]


def record_of(name: str, code: Code) -> Record:
    """The class that is registered under `name`, which must be one that travels as `code`."""
    if type(name) is not str:
        raise ProtocolError(f"a class named {name!r} arrived")
    record = _by_name.get(name)
    if record is None:
        raise Unreadable(
            f"it is a {name}, which is not registered in this process: import the module that "
            "registers it before joining"
        )
    if record.code != code:
        raise Unreadable(f"it is a {name}, which is another kind of class here: {SAME_SOURCE}")
    return record


def registered_class(name: str) -> type[Any]:
    """The class that is registered under that name. Raises Unreadable."""
    record = _by_name.get(name)
    return record_of(name, record.code if record else Code.DATACLASS).cls


def registered_name(cls: object) -> str | None:
    """The name under which a class is registered; None if it is not."""
    record = by_class.get(cls) if isinstance(cls, type) else None
    return None if record is None else record.name
