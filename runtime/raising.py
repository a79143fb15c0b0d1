"""Exceptions that reach more than one caller: each gets its own, with a traceback of its own.

A traceback grows by each frame that an exception leaves, and stays with the exception. One that an
operation keeps and raises again and again, or that ends a whole group, would gather the frames of
every call on every thread, with all that they refer to.

A copy is made inside the core, where no signal's handler runs: what one raised would pass for
something that the exception's class did.
"""

from __future__ import annotations

import sys
from weakref import WeakKeyDictionary

from orcalike.runtime.slots import slots_of
from orcalike.transport.drivers.deferral import held

DEEPEST = 100
"""Exceptions of a chain that are looked at."""

_fields: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()


@held
def fresh(error: BaseException) -> BaseException:
    """What to raise for a caller: a copy, or the exception itself if it cannot be copied.

    The copy has the notes of the exception, and the traceback up to now; frames are added to it alone.
    """
    copy = _copied(error)
    return error.with_traceback(None) if copy is None else copy


@held
def own(error: BaseException) -> BaseException:
    """What an operation raised just now, for its one caller.

    If the operation keeps the exception, it keeps it without the traceback. What the thread that
    ran it was handling meanwhile is not its context: that belongs to another call.
    """
    handled = sys.exc_info()[1]
    copy = _copied(error)
    forget(error)
    if copy is None:
        return error
    last = copy
    for _ in range(DEEPEST if handled is not None else 0):
        if last.__context__ is None:
            break
        if last.__context__ is handled:
            last.__context__ = None
            break
        last = last.__context__
    return copy


def forget(error: BaseException) -> None:
    """Forget the way by which this exception came here."""
    error.__traceback__ = None
    error.__context__ = None


def _copied(error: BaseException) -> BaseException | None:
    """The same exception as another object; None if its class does not allow it.

    `__init__` is not run again: an exception's arguments need not be those of its `__init__`.
    """
    cls = type(error)
    try:
        copy: BaseException = cls.__new__(cls, *error.args)
        if type(copy) is not cls or copy is error:
            return None
        copy.args = error.args
        for name in _fields_of(cls):
            value = getattr(error, name, None)
            if value is None:
                continue  # not set, or as it is from the start
            try:
                setattr(copy, name, value)
            except (AttributeError, TypeError):
                pass  # of those that cannot be set, `__new__` has made the same
        given = vars(error)
        if given:
            vars(copy).update(given)
            if "__notes__" in given:
                copy.__notes__ = list(given["__notes__"])
    except Exception:  # noqa: BLE001 - whatever the class does there, the exception is to be raised
        return None
    copy.__cause__ = error.__cause__
    copy.__context__ = error.__context__
    copy.__suppress_context__ = error.__suppress_context__
    return copy.with_traceback(error.__traceback__)


def _fields_of(cls: type) -> tuple[str, ...]:
    """The attributes of an exception of this class that are not in its `__dict__`."""
    found = _fields.get(cls)
    if found is None:
        named = slots_of(cls.__mro__)
        found = _fields[cls] = tuple(name for name in named if name != "__suppress_context__")
    return found
