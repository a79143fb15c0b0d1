"""Members, and the containers of `collections`: how they are taken apart, and made again."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from itertools import chain
from typing import Any

from orcalike.runtime.errors import NotSerializable
from orcalike.runtime.extension_codes import Code, Form
from orcalike.runtime.registered import registered_class, registered_name
from orcalike.transport.errors import ProtocolError
from orcalike.transport.view import Member

_MAKERS: tuple[type[Any], ...] = (
    *(bool, bytearray, bytes, complex, dict, float, frozenset, int, list, set, str, tuple),
    *(Counter, OrderedDict, deque),
)
_FACTORIES = {maker.__name__: maker for maker in _MAKERS}
"""What a defaultdict may make its values with, beside classes that are registered."""


def _defaultdict_form(it: defaultdict[Any, Any]) -> Form:
    factory: Any = it.default_factory
    name = getattr(factory, "__name__", "")
    if factory is not None and _FACTORIES.get(name) is not factory:
        registered = registered_name(factory)
        if registered is None:
            raise NotSerializable(
                f"a defaultdict that makes its values with {factory!r} cannot travel; give it a "
                "builtin type, as in defaultdict(list), or a registered class"
            )
        name = registered
    return Code.DEFAULT_DICT, (name, dict(it))


TAKE_APART: dict[type[Any], Callable[[Any], Form]] = {
    Member: lambda it: (Code.MEMBER, tuple(it.pack())),
    deque: lambda it: (Code.DEQUE, (it.maxlen, *it)),
    OrderedDict: lambda it: (Code.ORDERED_DICT, tuple(chain.from_iterable(it.items()))),
    Counter: lambda it: (Code.COUNTER, (dict(it),)),
    defaultdict: _defaultdict_form,
}


def _rebuild_deque(elements: tuple[Any, ...]) -> deque[Any]:
    maxlen, *items = elements
    if maxlen is not None and len(items) > maxlen:
        raise ProtocolError(f"a deque of {len(items)} items arrived, and at most {maxlen} fit")
    return deque(items, maxlen)


def _rebuild_ordered_dict(elements: tuple[Any, ...]) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(elements[::2], elements[1::2], strict=True))


def _rebuild_counter(elements: tuple[Any, ...]) -> Counter[Any]:
    (counts,) = elements
    made: Counter[Any] = Counter()
    dict.update(made, counts)  # as they are: no count is added to another
    return made


def _rebuild_defaultdict(elements: tuple[Any, ...]) -> defaultdict[Any, Any]:
    name, items = elements
    if not isinstance(name, str) or type(items) is not dict:
        raise ProtocolError(f"a defaultdict of {name!r} arrived")
    factory = None if name == "" else _FACTORIES.get(name) or registered_class(name)
    return defaultdict(factory, items)


REBUILD: dict[int, Callable[[tuple[Any, ...]], object]] = {
    Code.MEMBER: lambda elements: Member.unpack(list(elements)),
    Code.DEQUE: _rebuild_deque,
    Code.ORDERED_DICT: _rebuild_ordered_dict,
    Code.COUNTER: _rebuild_counter,
    Code.DEFAULT_DICT: _rebuild_defaultdict,
}
