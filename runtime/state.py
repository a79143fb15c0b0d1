"""What the state of a shared object is, and how it is set (A44, H76).

It is what the object's `snapshot` gives, or else its attributes. `giving` sends it to joiners, and
`taking` takes it there; a write with `undo` saves it, and puts it back (`undo`).
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import intern
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from orcalike.runtime.slots import slots_of
from orcalike.runtime.stream_decoder import Decoder

if TYPE_CHECKING:
    from orcalike.runtime.classes import ClassInfo
    from orcalike.runtime.marshal import Codec
    from orcalike.runtime.replica import Replica

_slots: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()


def what(name: str) -> str:
    """How errors call the state of the object of that name."""
    return f"the state of {name!r}"


def plain_state(replica: Replica) -> object:
    """What the object's `snapshot` gives, or its attributes."""
    assert replica.info is not None
    return plain_state_of(replica.object, replica.info)


def plain_state_of(shared: Any, info: ClassInfo) -> object:
    """The same of an object that is perhaps no replica's."""
    if "snapshot" in info.hooks:
        plain: object = shared.snapshot()
        return plain
    return _attributes(shared)


def set_plain_state(replica: Replica, state: object) -> None:
    """Make an object's state what `plain_state` gave."""
    assert replica.info is not None
    set_plain_state_of(replica.object, replica.info, state)


def set_plain_state_of(shared: Any, info: ClassInfo, state: object) -> None:
    """Make the state of an object that is perhaps no replica's what `plain_state_of` gave."""
    if "restore" in info.hooks:
        state = _attributes(type(shared).restore(state))
    assert isinstance(state, dict)
    for name in _attributes(shared):
        if name not in state:
            object.__delattr__(shared, name)
    for name, value in state.items():
        # One that has travelled is another object than the code's own name: found, but not fast.
        object.__setattr__(shared, intern(name), value)


def canonical_state(codec: Codec, replica: Replica) -> bytes:
    """An object's state, encoded in one way only."""
    return codec.encode_canonical(plain_state(replica), replica.name)


def decode_pieces(codec: Codec, pieces: Iterable[bytes], name: str) -> object:
    """The state of the object of that name, which came in these pieces. Raises ProtocolError."""
    decoder = Decoder(codec, what(name))
    for piece in pieces:
        decoder.feed(piece)
    return decoder.result()


def _attributes(shared: object) -> dict[str, object]:
    """The attributes of an object, those in slots too."""
    own = getattr(shared, "__dict__", None)
    found = dict(own or ())
    if type(own) is dict:
        # Looked at, it shares its keys with those of other objects for good, and CPython 3.11 does
        # not specialise operations on such: twice as slow. With one of its own they stay fast.
        object.__setattr__(shared, "__dict__", dict(found))
    for name in _slots_of(type(shared)):
        if hasattr(shared, name):
            found[name] = getattr(shared, name)
    return found


def _slots_of(cls: type) -> tuple[str, ...]:
    """The attributes that objects of this class have in slots of its own, or of classes before it."""
    found = _slots.get(cls)
    if found is None:
        found = slots_of(each for each in cls.__mro__ if "__slots__" in vars(each))
        _slots[cls] = found
    return found
