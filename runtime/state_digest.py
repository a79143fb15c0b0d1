"""Digests of states: equal for equal states, whatever made them, and within a bound of work.

What is encoded is independent of the order in which dicts and sets were filled, of identities and
of the hash seed; ints, bools and floats are distinguished, floats are taken by their bits, NumPy arrays
by their type, shape and bytes, registered classes by name and fields (`Codec.encode_canonical`).

A look goes through so many values at the most. A list, tuple, deque, text, bytes or array that has
more is looked at in a slice, whose place follows from `turn`: all members choose it alike, and
others come at other turns. A dict whose keys, or a set whose elements have more is looked at as far
as its length goes: no part of it is the same at each member without a look at all of it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection
from itertools import islice
from typing import Any

from orcalike.runtime.classes import lookup_class
from orcalike.runtime.errors import NotSerializable
from orcalike.runtime.marshal import Codec
from orcalike.runtime.registered import fields_of, is_dataclass
from orcalike.transport.wire.digest import blake2b

DIGEST_SIZE = 8

BYTES_PER_VALUE = 64
"""Bytes of a text, of bytes or of an array that count as one value."""

PER_ELEMENT = 8
"""Values that an element of a sequence may have, where the sequence is looked at in slices."""

ROOM = 32
"""How deep a look goes; a state that is deeper cannot travel."""

ENCODED_ROOM = 3 * ROOM + 3
"""How deep what stands for such a state is: a level of it may become three."""

DEQUE_MAX = 16_384
"""Elements of a deque among which a slice is taken: it is gone through to the slice."""

_SCALARS = frozenset({int, float, bool, type(None)})
_BYTES = frozenset({bytes, bytearray, str})
_SEQUENCES = frozenset({list, tuple, deque})
_SETS = frozenset({set, frozenset})


class Look:
    """One look at a state: at about `most` values of it, None for all."""

    def __init__(self, codec: Codec, most: int | None, turn: int) -> None:
        self._codec = codec
        self._most = most
        self._turn = turn
        self.values = 0
        """How many it went through."""
        self.is_whole = True
        """Whether it went through all of the state."""

    def digest(self, state: object) -> bytes:
        """The digest of what was looked at; of a state that cannot travel, that of its names."""
        try:
            cut = state if self._most is None else self._cut(state, self._most, ROOM)
            encoded = self._codec.encode_canonical(cut, depth=ENCODED_ROOM)
        except NotSerializable:
            self.is_whole = False
            names = sorted(state) if isinstance(state, dict) else type(state).__qualname__
            encoded = repr(names).encode()
        return blake2b(encoded, digest_size=DIGEST_SIZE).digest()

    def digest_of_values(self, values: list[object]) -> bytes:
        """The digest of an object that has these values, in any order; of too many, their number."""
        if self._most is not None and 2 * len(values) > self._most:
            self.values += 1
            self.is_whole = False
            encoded = repr(len(values)).encode()
            return blake2b(encoded, digest_size=DIGEST_SIZE).digest()
        most = None if self._most is None else _share(values, self._most)
        found = []
        for value in values:
            try:
                cut = value if most is None else self._cut(value, most, ROOM)
                found.append(self._codec.encode_canonical(cut, depth=ENCODED_ROOM))
            except NotSerializable:
                self.is_whole = False
                found.append(type(value).__qualname__.encode())
        found.sort()
        digest = blake2b(digest_size=DIGEST_SIZE)
        for encoded in found:
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        return digest.digest()

    def _cut(self, value: Any, most: int, room: int) -> Any:
        """The value, or what stands for it where it has more than `most` values.

        The large values of a dict share evenly in `most`, so that their order does not matter.
        """
        kind = type(value)
        self.values += 1
        if kind in _SCALARS:
            return value
        if kind in _BYTES:
            return self._slice(value, max(most, 1) * BYTES_PER_VALUE)
        if room == 0:
            raise NotSerializable("a state that is too deep")
        if kind in _SEQUENCES:
            return [kind.__name__, len(value), self._elements(value, most, room)]
        if kind in _SETS:
            weight = _weight(value, most, room)
            if weight > most:
                self.is_whole = False
                return [kind.__name__, len(value)]
            self.values += weight
            return value
        if isinstance(value, dict):
            return [kind.__name__, len(value), self._items(value, most, room)]
        if lookup_class(kind) is not None:
            return value  # a reference to a shared object
        if is_dataclass(kind):
            named = {name: getattr(value, name, None) for name in fields_of(kind)}
            return [kind.__qualname__, self._items(named, max(most, 2 * len(named)), room)]
        if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
            return self._array(value, most)
        if isinstance(value, tuple):  # a NamedTuple
            return [kind.__qualname__, len(value), self._elements(value, most, room)]
        return value

    def _items(self, value: Any, most: int, room: int) -> Any:
        count = len(value)
        weight = count if 2 * count > most else _weight(value, most - count, room)
        if weight + count > most:
            self.is_whole = False
            return None
        each = _share(value.values(), most - weight)
        self.values += weight
        items = {key: self._cut(item, each, room - 1) for key, item in value.items()}
        return list(items.items()) if type(value) is OrderedDict else items

    def _elements(self, value: Any, most: int, room: int) -> list[Any]:
        count = len(value)
        some: Any = tuple(value) if isinstance(value, tuple) else value
        if count > most:
            self.is_whole = False
            first = type(some[0])
            wanted = most if first in _SCALARS or first in _BYTES else most // PER_ELEMENT
            if wanted <= 0:
                return []
            if type(value) is deque:
                start = self._start(min(count, DEQUE_MAX), min(wanted, DEQUE_MAX))
                some = list(islice(some, start, start + wanted))
            else:
                start = self._start(count, wanted)
                some = some[start : start + wanted]
        each = max(most // len(some) - 1, 0) if some else 0
        return [self._cut(element, each, room - 1) for element in some]

    def _slice(self, value: Any, most: int) -> Any:
        count = len(value)
        self.values += min(count, most) // BYTES_PER_VALUE
        if count <= most:
            return value
        self.is_whole = False
        start = self._start(count, most)
        return [count, value[start : start + most]]

    def _array(self, value: Any, most: int) -> Any:
        per_value = max(BYTES_PER_VALUE // max(value.itemsize, 1), 1)
        elements = max(most, 1) * per_value
        self.values += min(value.size, elements) // per_value
        if value.size <= elements:
            return value
        self.is_whole = False
        start = self._start(value.size, elements)
        return [str(value.dtype), list(value.shape), value.flat[start : start + elements]]

    def _start(self, count: int, most: int) -> int:
        """Where the slice of this turn begins."""
        return (self._turn * 0x9E3779B1 >> 4) % (count - most + 1)


def _share(values: Collection[Any], most: int) -> int:
    """How much of `most` is for each of the values that may be large."""
    large = sum(
        type(value) not in _SCALARS and (type(value) not in _BYTES or len(value) > BYTES_PER_VALUE)
        for value in values
    )
    return max(most - len(values), 0) // max(large, 1)


def _weight(hashables: Collection[Any], most: int, room: int) -> int:
    """How many values these have, in any order; more than `most` where it is too many, or too deep."""
    weight = len(hashables)
    if weight > most or room == 0:
        return max(weight, most + 1)
    for value in hashables:
        kind = type(value)
        if kind in _SCALARS:
            continue
        if kind in _BYTES:
            weight += len(value) // BYTES_PER_VALUE
        elif isinstance(value, tuple | frozenset):
            weight += _weight(value, most - weight, room - 1)
        elif is_dataclass(kind) and lookup_class(kind) is None:
            of_fields = [getattr(value, name, None) for name in fields_of(kind)]
            weight += _weight(of_fields, most - weight, room - 1)
        if weight > most:
            break
    return weight
