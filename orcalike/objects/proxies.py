"""What `orcalike.Manager` gives: proxies of shared objects, as `multiprocessing`'s managers have them.

A proxy is an address and a name. It can be pickled, passed to a child process, and put into another
proxy. A process joins the manager's group with the first proxy that it uses, and leaves it when it
ends; so does a forked child, which has none of its parent's groups.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import copy
import multiprocessing.util
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from orcalike import objects
from orcalike.errors import JoinFailed, OrcalikeError
from orcalike.group import Group
from orcalike.objects.permits import BoundedPermits, Permits
from orcalike.runtime.registered import register
from orcalike.session.joining import Joining, connect
from orcalike.session.options import make_options
from orcalike.transport.drivers.deferral import held, held_or_undone
from orcalike.transport.view import View

JOIN_WITHIN = 60.0
"""Seconds in which a process must have joined the manager's group, and have found an object."""

KINDS: dict[str, type[Any]] = {
    "list": objects.List,
    "dict": objects.Dict,
    "Namespace": objects.Dict,
    "Lock": objects.Lock,
    "RLock": objects.RLock,
    "Condition": objects.Condition,
    "Semaphore": Permits,
    "BoundedSemaphore": BoundedPermits,
    "Event": objects.Event,
    "Barrier": objects.Barrier,
    "Queue": objects.Queue,
    "Value": objects.Value,
    "Array": objects.List,
}
"""The classes of what a manager makes, by its name there. All members have them before they join."""


class Membership:
    """This process as a member of one manager's group."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.objects: dict[str, Any] = {}
        group._runtime.table.expect_other_seeds()
        group._session.tells_loss = False  # the maker orders, and so has all that was ordered
        atexit.unregister(group.close)  # with those of `multiprocessing`, in its children, too
        self._end = multiprocessing.util.Finalize(self, _leave, args=(group,), exitpriority=-1)

    def leave(self) -> None:
        """Leave the group."""
        self._end()


def _leave(group: Group) -> None:
    with contextlib.suppress(OrcalikeError):
        group._leave(orderly=False)  # each call has had its outcome


class Maker(Membership):
    """The process that has made the group: it goes on, however many of the others are lost."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="orca", dir="/tmp")  # a short path
        try:
            group = connect(Joining(partial(make_options, listen=f"unix:{self._folder}/manager")))
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        super().__init__(group)
        self._blocked = threading.Event()
        self.group._session.on_blocked = self._blocked.set
        self.group._session.on_view.append(self._viewed)
        thread = threading.Thread(target=self._reset, name="orcalike manager", daemon=True)
        thread.start()
        # For the process that made it alone, and not for a forked child.
        self._clear = multiprocessing.util.Finalize(
            self, shutil.rmtree, args=(self._folder, True), exitpriority=-2
        )

    def leave(self) -> None:
        """Leave the group, which no other process can join any more."""
        super().leave()
        self._clear()

    def _viewed(self, view: View | None) -> None:
        if view is None:
            self._blocked.set()

    def _reset(self) -> None:
        """Go on without those that were lost, as often as it must be, until the group is left."""
        while not self.group._closed:
            self._blocked.wait()
            self._blocked.clear()
            while not self.group._closed and self.group._session.blocked is not None:
                with contextlib.suppress(OrcalikeError):
                    self.group.reset(minimum=1, timeout=JOIN_WITHIN)


_locks: dict[str, threading.Lock] = {}
"""For joining, by address."""
_members: dict[str, Membership] = {}
"""The managers' groups that this process is in, by address."""


def _forget() -> None:
    _locks.clear()
    _members.clear()


os.register_at_fork(after_in_child=_forget)


def make_group() -> str:
    """Make a manager's group; returns the address at which processes join it."""
    maker = Maker()
    _members[maker.group.address] = maker
    return maker.group.address


def leave_group(address: str) -> None:
    """Leave a manager's group; its proxies are of no use in this process then."""
    membership = _members.get(address)
    if membership is not None:
        membership.leave()
        # Not before: a proxy that another thread uses meanwhile would join the group anew.
        _members.pop(address, None)
        _locks.pop(address, None)


def _membership(address: str) -> Membership:
    with _locks.setdefault(address, threading.Lock()):
        if address not in _members:
            if not os.path.exists(address.removeprefix("unix:")):
                raise JoinFailed(f"the manager at {address} was shut down, or has ended")
            group = connect(Joining(partial(make_options, seeds=address, timeout=JOIN_WITHIN)))
            _members[address] = Membership(group)
        return _members[address]


def share(address: str, kind: str, name: str, *args: Any) -> Any:
    """Make an object in a manager's group."""
    membership = _membership(address)
    args = tuple(bound(each) if isinstance(each, Acquirer) else each for each in args)
    made = membership.group.share(KINDS[kind], name, *args)
    membership.objects[name] = made
    return made


def bound(proxy: Proxy) -> Any:
    """The shared object of a proxy, at this process."""
    address, name = proxy._address, proxy._name
    membership = _members.get(address) or _membership(address)
    found = membership.objects.get(name)
    if found is None:
        found = membership.group.find(KINDS[proxy._kind], name, timeout=JOIN_WITHIN)
        membership.objects[name] = found
    return found


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
