"""What becomes of a shared object outside of its group: it is not pickled, and a copy of it is plain.

What a pickle would make in another process is an object that is not shared: a lock that locks nothing.
"""

from __future__ import annotations

import copy
from typing import Any

from orcalike.declare.marks import mark_local
from orcalike.runtime.replica import replica_of


def refuse_pickles(cls: Any) -> None:
    """Have an object of the class raise when it is pickled while it is shared.

    A class that says itself what its objects are reduced to, or how they are copied, is left as it is.
    """
    if cls.__reduce_ex__ is not object.__reduce_ex__ or cls.__reduce__ is not object.__reduce__:
        return
    cls.__reduce_ex__ = _Methods.__reduce_ex__
    for name in ("__copy__", "__deepcopy__"):
        if not hasattr(cls, name):
            setattr(cls, name, vars(_Methods)[name])


class _Methods:
    """What a shared class is given."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        replica, cls = replica_of(self), _class_of(self)
        if replica is not None and cls.__reduce__ is object.__reduce__:
            raise TypeError(
                f"{replica.name!r} ({cls.__name__}) is shared, and cannot be pickled: what came of it "
                "would be an object that is not. Let the other process join the group, with "
                "seeds=group.address, and find the object by its name; or start it with group.fork; "
                "or use orcalike.Manager, whose proxies can be pickled"
            )
        return object.__reduce_ex__(self, protocol)

    def __copy__(self) -> Any:
        return copy.copy(_Reduced(_reduced(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        make, *rest = _reduced(self)

        def make_known(*args: Any) -> Any:
            # Known before its attributes are copied: they may refer to it.
            memo[id(self)] = made = make(*args)
            return made

        return copy.deepcopy(_Reduced((make_known, *rest)), memo)


def _reduced(shared: object) -> Any:
    """What `copy` makes a copy of an object from; a subclass may say that itself."""
    own = _class_of(shared).__reduce_ex__
    if own is _Methods.__reduce_ex__:
        return object.__reduce_ex__(shared, 4)
    return own(shared, 4)


def _class_of(shared: object) -> Any:
    """Its class, of which a type checker does not know what was set here."""
    return type(shared)


class _Reduced:
    """Stands for an object in a call of `copy`, which asks what it is reduced to."""

    def __init__(self, reduced: tuple[Any, ...]) -> None:
        self._reduced = reduced

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._reduced


for _name in ("__reduce_ex__", "__copy__", "__deepcopy__"):
    mark_local(vars(_Methods)[_name])  # a subclass that is shared has them, too
