"""How the arguments of a call stand: counted at once, and moved into place when named.

The compiled caller compares a call with the operation's `Arity` before anything is sent, so a
call that does not fit fails at the caller, as a plain call does, and never reaches the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from orcalike.runtime.classes import ClassInfo, Declared

# inspect's CO_VARARGS and CO_VARKEYWORDS, without its import, which takes long.
VARARGS, VARKEYWORDS = 0x04, 0x08

Arguments: TypeAlias = tuple[tuple[object, ...], dict[str, object]]


class Arity(NamedTuple):
    """How many arguments a call must and may have, without `self`."""

    required: int
    """Positional ones without a default."""
    accepts: int
    """The most positional ones; -1 when there is `*args`."""
    keyword_only_required: bool
    """Whether some argument without a default can be given by keyword only."""


def arity(function: FunctionType, *, method: bool = True) -> Arity:
    """A function's arity; `method` leaves out its first parameter."""
    code = function.__code__
    own = 1 if method else 0
    required = max(code.co_argcount - len(function.__defaults__ or ()) - own, 0)
    accepts = -1 if code.co_flags & VARARGS else max(code.co_argcount - own, 0)
    defaults = function.__kwdefaults__ or {}
    return Arity(required, accepts, any(name not in defaults for name in _keyword_only(function)))


def _keyword_only(function: FunctionType) -> tuple[str, ...]:
    """The names of the parameters that can be given by keyword only."""
    code = function.__code__
    return code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]


def positional(
    operation: Declared, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> Arguments:
    """Moves keyword arguments to their places, so that they travel without their names.

    `args` are those after `self`. Defaults fill gaps only: what is left out at the end stays out.
    Keyword-only arguments, and those of `**kwargs`, stay in the dictionary.

    Raises:
        TypeError: The call does not fit; the words are those of a plain Python call.
    """
    is_method = operation.kind != "atomic"
    if _fits(operation.function, is_method, len(args), tuple(kwargs)):
        return args, dict(kwargs)
    place = _placer(operation.function)
    if not is_method:
        return place(*args, **kwargs)
    placed, named = place(None, *args, **kwargs)
    return placed[1:], named


@functools.lru_cache(maxsize=1024)
def _fits(function: FunctionType, is_method: bool, count: int, names: tuple[str, ...]) -> bool:
    """Whether that many positional arguments make a call with those named ones, which cannot stand among them."""
    required, accepts, _ = arity(function, method=is_method)
    named = _keyword_only(function)
    needed = {name for name in named if name not in (function.__kwdefaults__ or {})}
    return required <= count and not 0 <= accepts < count and needed <= {*names} <= {*named}


def order_of(function: FunctionType, count: int, names: tuple[str, ...]) -> bytes:
    """How a method's call of `count` positional arguments and these named ones stands in its places, without `self`.

    By place, the index of the argument as it was given. Empty if they are not the first ones, without a gap.
    """
    code = function.__code__
    given = {name: count + index for index, name in enumerate(names)}
    places = code.co_varnames[1 : code.co_argcount][count : count + len(names)]
    if given.keys() != set(places) or count + 1 < code.co_posonlyargcount:
        return b""
    return bytes([*range(count), *(given[name] for name in places)])


def constructor_arguments(
    info: ClassInfo, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> Arguments:
    """The same for the arguments with which an object of a shared class is made.

    Raises:
        TypeError: They do not fit `__init__`.
    """
    if info.init is None:
        if args or kwargs:
            raise TypeError(f"{info.cls.__qualname__}() takes no arguments")
        return (), {}
    placed, named = _placer(info.init)(None, *args, **kwargs)
    return placed[1:], named


class _Missing:
    """Stands for an argument that was left out."""


_MISSING = _Missing()


@functools.lru_cache(maxsize=1024)
def _placer(function: FunctionType) -> Callable[..., Arguments]:
    """Takes a call of a function and returns its arguments in their places."""
    bind = _binder(function)
    defaults = function.__defaults__ or ()
    first = function.__code__.co_argcount - len(defaults)

    def place(*args: object, **kwargs: object) -> Arguments:
        given, rest, named, options = bind(*args, **kwargs)
        count = len(given)
        while count and given[count - 1] is _MISSING:
            count -= 1
        placed = (
            defaults[i - first] if value is _MISSING else value
            for i, value in enumerate(given[:count])
        )
        chosen = {name: value for name, value in named.items() if value is not _MISSING}
        return (*placed, *rest), {**chosen, **options}

    return place


def _binder(
    function: FunctionType,
) -> Callable[..., tuple[tuple[Any, ...], tuple[Any, ...], dict[str, Any], dict[str, Any]]]:
    """A function with the same parameters that returns what each of them was given.

    Python itself binds the arguments, so its TypeErrors are Python's own, names included.
    """
    code = function.__code__
    names = list(code.co_varnames)
    plain = [names.pop(0) for _ in range(code.co_argcount)]
    keyword_only = [names.pop(0) for _ in range(code.co_kwonlyargcount)]
    rest = names.pop(0) if code.co_flags & VARARGS else None
    options = names.pop(0) if code.co_flags & VARKEYWORDS else None
    parameters = [
        *plain[: code.co_posonlyargcount],
        *(["/"] if code.co_posonlyargcount else []),
        *plain[code.co_posonlyargcount :],
        *([f"*{rest}"] if rest else ["*"] if keyword_only else []),
        *keyword_only,
        *([f"**{options}"] if options else []),
    ]
    given = "".join(f"{name}, " for name in plain)
    named = ", ".join(f"{name!r}: {name}" for name in keyword_only)
    result = f"({given}), {rest or '()'}, {{{named}}}, {options or '{}'}"
    bind: FunctionType = eval(f"lambda {', '.join(parameters)}: ({result})", {})
    bind.__name__, bind.__qualname__ = function.__name__, function.__qualname__
    bind.__defaults__ = tuple(_MISSING for _ in function.__defaults__ or ())
    bind.__kwdefaults__ = dict.fromkeys(function.__kwdefaults__ or (), _MISSING)
    return bind
