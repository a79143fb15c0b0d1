"""What `orcalike.Manager` gives: proxies of shared objects, as `multiprocessing`'s managers have them.

A proxy is an address and a name. It can be pickled, passed to a child process, and put into another
proxy. A process joins the manager's group with the first proxy that it uses (`manager_groups`).
"""

from __future__ import annotations

import array
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from orcalike.objects.manager_groups import membership_in
from orcalike.runtime.registered import register
from orcalike.transport.drivers.deferral import held, held_or_undone


def share(address: str, kind: str, name: str, *args: Any) -> Any:
    """Make an object in a manager's group."""
    membership = membership_in(address)
    args = tuple(bound(each) if isinstance(each, Acquirer) else each for each in args)
    return membership.share(kind, name, *args)


def bound(proxy: Proxy) -> Any:
    """The shared object of a proxy, at this process."""
    membership = membership_in(proxy._address)
    found = membership.objects.get(proxy._name)
    return membership.find(proxy._kind, proxy._name) if found is None else found


_KEEP = "orcalike: proxies stay proxies"
"""In the memo of a copy that `own` makes; the other keys there are numbers."""


def own(value: Any) -> Any:
    """A copy of what an object has returned, which is a part of its state; proxies stay proxies."""
    kind = type(value)
    if kind in (int, str, float, bool, bytes, type(None)) or isinstance(value, Proxy):
        return value
    if kind in (list, tuple, set):
        return kind(map(own, value))
    if kind is dict:
        return {own(key): own(each) for key, each in value.items()}
    return copy.deepcopy(value, {_KEEP: True})  # type: ignore[dict-item]


class _Forwarded:
    """Stands for methods of a proxy, each of which calls the shared object's method of its name."""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        def call(self: Proxy, *args: Any, **kwargs: Any) -> Any:
            return own(getattr(bound(self), name)(*args, **kwargs))

        call.__name__ = name
        call.__qualname__ = f"{owner.__qualname__}.{name}"
        setattr(owner, name, call)


forwarded: Any = _Forwarded()
"""`append = clear = forwarded` in the body of a proxy's class."""


@register
@dataclass(eq=False, repr=False)
class Proxy:
    """A name of a shared object that travels."""

    _address: str
    _name: str

    _kind: ClassVar[str]

    def _callmethod(self, name: str, args: tuple[Any, ...] = (), kwds: Any = None) -> Any:
        return own(getattr(bound(self), name)(*args, **(kwds or {})))

    def _getvalue(self) -> Any:
        return bound(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return self if _KEEP in memo else self._getvalue()

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name} object, typeid {self._kind!r} at {id(self):#x}>"

    def __str__(self) -> str:
        return repr(bound(self))


@register
@dataclass(eq=False, repr=False)
class ListProxy(Proxy):
    """A list."""

    _kind = "list"

    __add__ = __contains__ = __delitem__ = __getitem__ = __len__ = __mul__ = forwarded
    __rmul__ = __setitem__ = forwarded
    append = clear = copy = count = extend = index = insert = pop = remove = forwarded
    reverse = sort = forwarded

    def __iter__(self) -> Iterator[Any]:
        return iter(self._getvalue())

    def __reversed__(self) -> Iterator[Any]:
        return iter(self._getvalue()[::-1])

    def __iadd__(self, values: Any) -> Self:  # type: ignore[misc]  # `+` makes a plain list
        bound(self).extend(values)
        return self

    def __imul__(self, times: int) -> Self:  # type: ignore[misc]
        bound(self).__imul__(times)
        return self

    def _getvalue(self) -> Any:
        return own(bound(self).copy())


@register
@dataclass(eq=False, repr=False)
class DictProxy(Proxy):
    """A dict."""

    _kind = "dict"

    __contains__ = __delitem__ = __getitem__ = __len__ = __or__ = __ror__ = forwarded
    __setitem__ = forwarded
    clear = copy = get = pop = popitem = setdefault = update = forwarded

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __reversed__(self) -> Iterator[Any]:
        return iter(self.keys()[::-1])

    def keys(self) -> list[Any]:
        """The keys, as a list."""
        return [own(key) for key in bound(self)]

    def values(self) -> list[Any]:
        """The values, as a list."""
        return [own(each) for each in bound(self).values()]

    def items(self) -> list[tuple[Any, Any]]:
        """The pairs, as a list."""
        return [(own(key), own(each)) for key, each in bound(self).items()]

    def __ior__(self, other: Any) -> Self:  # type: ignore[misc]
        bound(self).update(other)
        return self

    def _getvalue(self) -> Any:
        return own(bound(self).copy())


@register
@dataclass(eq=False, repr=False)
class NamespaceProxy(Proxy):
    """An object with attributes; those that begin with `_` are this proxy's own."""

    _kind = "Namespace"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        try:
            return own(bound(self)[name])
        except KeyError:
            raise AttributeError(f"'Namespace' object has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            bound(self)[name] = value

    def __delattr__(self, name: str) -> None:
        if name.startswith("_"):
            object.__delattr__(self, name)
            return
        try:
            del bound(self)[name]
        except KeyError:
            raise AttributeError(name) from None

    def __str__(self) -> str:
        pairs = sorted(bound(self).items())
        return f"Namespace({', '.join(f'{name}={value!r}' for name, value in pairs)})"


def _undo_enter(proxy: Acquirer, acquired: bool) -> None:
    bound(proxy).__exit__()


@register
@dataclass(eq=False, repr=False)
class Acquirer(Proxy):
    """What can be acquired."""

    _kind = "Lock"

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Acquire it: whether that was done, within `timeout` seconds."""
        limit = () if timeout is None else (timeout,)
        return bool(bound(self).acquire(blocking, *limit))

    release = forwarded

    # A handler of a signal that raises as `__enter__` returns, or as `__exit__` begins, would leave it held.

    @held_or_undone(_undo_enter)
    def __enter__(self) -> bool:
        bound(self).__enter__()
        return True

    @held
    def __exit__(self, *error: object) -> None:
        bound(self).__exit__(*error)


@register
@dataclass(eq=False, repr=False)
class LockProxy(Acquirer):
    """A lock."""


@register
@dataclass(eq=False, repr=False)
class RLockProxy(Acquirer):
    """A lock that its holder may acquire again."""

    _kind = "RLock"


@register
@dataclass(eq=False, repr=False)
class SemaphoreProxy(Acquirer):
    """A semaphore."""

    _kind = "Semaphore"


@register
@dataclass(eq=False, repr=False)
class BoundedSemaphoreProxy(Acquirer):
    """A bounded semaphore."""

    _kind = "BoundedSemaphore"


@register
@dataclass(eq=False, repr=False)
class ConditionProxy(Acquirer):
    """A condition."""

    _kind = "Condition"

    wait = wait_for = notify = notify_all = forwarded


@register
@dataclass(eq=False, repr=False)
class EventProxy(Proxy):
    """An event."""

    _kind = "Event"

    is_set = set = clear = wait = forwarded


@register
@dataclass(eq=False, repr=False)
class BarrierProxy(Proxy):
    """A barrier."""

    _kind = "Barrier"

    wait = abort = reset = forwarded

    @property
    def parties(self) -> int:
        """How many it takes."""
        return int(bound(self).parties)

    @property
    def n_waiting(self) -> int:
        """How many wait."""
        return int(bound(self).n_waiting)

    @property
    def broken(self) -> bool:
        """Whether it is broken."""
        return bool(bound(self).broken)


@register
@dataclass(eq=False, repr=False)
class QueueProxy(Proxy):
    """A queue."""

    _kind = "Queue"

    put = get = put_nowait = get_nowait = qsize = empty = full = task_done = forwarded
    join = forwarded


@register
@dataclass(eq=False, repr=False)
class ValueProxy(Proxy):
    """A value."""

    _typecode: str

    _kind = "Value"

    get = set = forwarded

    @property
    def value(self) -> Any:
        """The value."""
        return self.get()

    @value.setter
    def value(self, value: Any) -> None:
        self.set(value)

    def __str__(self) -> str:
        return f"Value({self._typecode!r}, {self.get()!r})"


@register
@dataclass(eq=False, repr=False)
class ArrayProxy(Proxy):
    """An array of numbers of one type, as `array.array` has them."""

    _typecode: str

    _kind = "Array"

    __len__ = forwarded

    def __iter__(self) -> Iterator[Any]:
        return iter(self._getvalue())

    def __getitem__(self, index: Any) -> Any:
        found = bound(self)[index]
        return array.array(self._typecode, found) if isinstance(index, slice) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, slice):
            bound(self)[index] = array.array(self._typecode, [value])[0]
        elif isinstance(value, array.array) and value.typecode == self._typecode:
            bound(self)[index] = value.tolist()
        else:
            raise TypeError(f"a slice takes an array.array of type {self._typecode!r}")

    def __str__(self) -> str:
        return repr(self._getvalue())

    def _getvalue(self) -> array.array[Any]:
        return array.array(self._typecode, bound(self).copy())
