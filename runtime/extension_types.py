"""What travels beyond msgpack's own types, and what it looks like on the way.

A value that msgpack does not know is distinguished in one of two forms:

- a *leaf*, an extension type whose payload is a few bytes (a UUID's 16, say);
- a *tagged array*: an array whose first element is an empty extension type, the tag, and whose
  other elements are what the value is made of (a set's elements, a dataclass's fields).

`take_apart` gives the form of a value; `revive` and `rebuild` make the value of it again, and
raise whatever the value's own constructor raises where the form is wrong. The codes of the forms are in
`extension_codes`, the enums and dataclasses that a program has registered in `registered`, what is known of
members and of the containers of `collections` in `container_types`, and of dates, decimal numbers and UUIDs in `standard_types`.
"""

from __future__ import annotations

import functools
import importlib
import re
import struct
import sys
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, ValuesView
from enum import Enum
from math import prod
from types import ModuleType
from typing import Any, cast

from orcalike.runtime import container_types
from orcalike.runtime.classes import lookup_class
from orcalike.runtime.errors import NotSerializable, Unreadable
from orcalike.runtime.extension_codes import Code, Form
from orcalike.runtime.registered import (
    SAME_SOURCE,
    Record,
    by_class,
    is_dataclass,
    is_named_tuple,
    record_of,
)
from orcalike.runtime.replica import replica_of
from orcalike.transport.drivers.driver import uncounted
from orcalike.transport.errors import ProtocolError
from orcalike.transport.wording import counted


def big_int(value: int) -> bytes:
    """The payload of a BIG_INT: two's complement, the highest byte first."""
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def take_apart(value: Any) -> Form:
    """The form of a value that is neither msgpack's own nor a list, a set or a reference.

    Raises NotSerializable with the reason and the remedy, without the path to the value.
    """
    kind = type(value)
    if kind in _TAKE_APART:
        return _TAKE_APART[kind](value)
    if kind in by_class:
        return _registered_form(value, by_class[kind])
    if kind.__module__ in _STANDARD_MODULES:
        forms: dict[type[Any], Callable[[Any], Form]] = _standard().TAKE_APART
        if kind in forms:
            return forms[kind](value)
    form = _numpy_form(value)
    if form is None:
        raise NotSerializable(f"{kind!r} cannot travel; {_remedy(value)}")
    return form


def elements_of(value: Any) -> tuple[Any, ...]:
    """What a value is made of that may be unable to travel; raises as `take_apart` does."""
    if type(value).__module__ == "numpy" and hasattr(value, "dtype"):
        _array_head(value)
        return ()
    _, content = take_apart(value)
    return content if type(content) is tuple else ()


def is_decided_by_type(kind: type[Any]) -> bool:
    """Whether all values of a type that travels do, but for what they are made of."""
    return kind.__module__ != "numpy" and kind.__name__ not in ("defaultdict", "ZoneInfo")


def _registered_form(value: Any, record: Record) -> Form:
    if record.code == Code.FLAG:
        return Code.FLAG, (record.name, value.value)
    if record.code == Code.ENUM:
        return Code.ENUM, (record.name, value.name)
    if record.code == Code.NAMED_TUPLE:
        return Code.NAMED_TUPLE, (record.name, record.fingerprint, *value)
    try:
        fields = [getattr(value, field) for field in record.fields]
    except AttributeError as error:
        raise NotSerializable(f"a field is not set, and cannot travel: {error}") from None
    return Code.DATACLASS, (record.name, record.fingerprint, *fields)


_STANDARD_MODULES = frozenset(
    {"datetime", "decimal", "pathlib", "pathlib._local", "uuid", "zoneinfo"}
)


@functools.cache
def _standard() -> ModuleType:
    """What is known of the types of these modules, imported with the first value that travels."""
    return _load("orcalike.runtime.standard_types")


def _load(module: str) -> ModuleType:
    """A module that a value needs, which takes long to import: for the operation it is no work."""
    return uncounted(importlib.import_module, module)


_TAKE_APART: dict[type[Any], Callable[[Any], Form]] = {
    complex: lambda it: (Code.COMPLEX, struct.pack(">dd", it.real, it.imag)),
    bytearray: lambda it: (Code.BYTEARRAY, bytes(it)),
    **container_types.TAKE_APART,
}


def place(value: object, index: int) -> str:
    """How the path to a value names element `index` of the form of what it lies in."""
    record = by_class.get(type(value))
    if record and index >= 2:
        return f".{record.fields[index - 2]}"
    if hasattr(value, "tzinfo"):
        return ".tzinfo"
    name = type(value).__name__
    if name == "deque":
        return f"[{index - 1}]"
    if name == "OrderedDict":
        key = [*cast("dict[object, object]", value)][index // 2]
        return f"[{key!r:.40}]" if index % 2 else f" key {key!r:.40}"
    return ""  # a dict inside says where; of all others, no element can be wrong


def _remedy(value: object) -> str:
    """What to do about a value that cannot travel."""
    is_record = not isinstance(value, type) and is_dataclass(type(value))
    if is_record or isinstance(value, Enum) or is_named_tuple(type(value)):
        return "register its class with orcalike.register"
    if replica_of(value) is not None:
        return "it is shared in another group: share it in this one, too, or pass its name"
    if lookup_class(type(value)) is not None:
        return "it is not shared: pass what group.share returns"
    if isinstance(value, (type, ModuleType)) or callable(value):
        return "pass its name, and let each process look it up"
    for plain in (str, bytes, int, float, tuple, list, dict, set, frozenset, _standard().datetime):
        if isinstance(value, plain):
            return f"only a plain {plain.__name__} does: convert it to one"
    if isinstance(value, memoryview):
        return "pass bytes(value)"
    if hasattr(value, "read"):
        return "pass what it holds: value.read()"
    if isinstance(value, ItemsView):
        return "pass dict(value)"
    if isinstance(value, (Iterator, KeysView, ValuesView, range)):
        return "pass list(value)"  # there is nothing else in it
    return "pass plain data, a registered dataclass, or a shared object"


def revive(code: int, payload: bytes) -> object:
    """The value of a leaf."""
    table = _REVIVE if code in _REVIVE else _standard().REVIVE
    return table[code](payload)


def rebuild(code: int, elements: tuple[Any, ...]) -> object:
    """The value of a tagged array, given its elements without the tag."""
    table = _REBUILD if code in _REBUILD else _standard().REBUILD
    return table[code](elements)


def _rebuild_enum(elements: tuple[Any, ...]) -> object:
    name, member = elements
    members = record_of(name, Code.ENUM).cls.__members__
    if type(member) is not str:
        raise ProtocolError(f"a member {member!r} of {name} arrived")
    if member not in members:
        raise Unreadable(f"it is {name}.{member}, which does not exist here: {SAME_SOURCE}")
    return members[member]


def _rebuild_flag(elements: tuple[Any, ...]) -> object:
    name, value = elements
    cls = record_of(name, Code.FLAG).cls
    if type(value) is not int:
        raise ProtocolError(f"flags {value!r} of {name} arrived")
    try:
        return cls(value)
    except ValueError as error:
        raise Unreadable(f"it is a {name} with other flags ({error}): {SAME_SOURCE}") from None


def _rebuild_fields(code: Code, elements: tuple[Any, ...]) -> object:
    name, fingerprint, *values = elements
    record = record_of(name, code)
    if fingerprint != record.fingerprint:
        raise Unreadable(
            f"it is a {name} with other fields than {', '.join(record.fields)}: {SAME_SOURCE}"
        )
    if record.code == Code.NAMED_TUPLE:
        if len(values) != len(record.fields):
            raise ProtocolError(f"a {name} of {counted(len(values), 'field')} arrived")
        return tuple.__new__(record.cls, values)
    made = object.__new__(record.cls)
    for field, value in zip(record.fields, values, strict=True):
        object.__setattr__(made, field, value)  # also if the dataclass is frozen
    return made


_REVIVE: dict[int, Callable[[bytes], object]] = {
    Code.BIG_INT: lambda payload: int.from_bytes(payload, "big", signed=True),
    Code.COMPLEX: lambda payload: complex(*struct.unpack(">dd", payload)),
    Code.BYTEARRAY: bytearray,
    Code.NUMPY_ARRAY: lambda payload: _numpy_array(payload),
    Code.NUMPY_SCALAR: lambda payload: _numpy_array(payload)[()],
}

_REBUILD: dict[int, Callable[[tuple[Any, ...]], object]] = {
    Code.LIST: list,
    Code.SET: set,
    Code.FROZENSET: frozenset,
    Code.ENUM: _rebuild_enum,
    Code.FLAG: _rebuild_flag,
    Code.DATACLASS: functools.partial(_rebuild_fields, Code.DATACLASS),
    Code.NAMED_TUPLE: functools.partial(_rebuild_fields, Code.NAMED_TUPLE),
    **container_types.REBUILD,
}


# NumPy is not imported for values of other types: a process without it has no arrays to send. The
# first array that arrives imports it.

_NUMPY_TYPE = re.compile(
    r"[<>|=](?:(?P<plain>b1|[iu][1248]|f[248]|c8|c16|(?=[mM])[mM]8)"
    r"(?:\[\d{0,9}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?|(?P<text>[SU])(?P<length>\d{1,9}))"
)
"""Numbers, moments and spans of time, and texts: each item has a fixed size, and refers to nothing."""


def _numpy_form(value: Any) -> Form | None:
    """The form of an array or a NumPy scalar: dtype and shape, then the items in C order."""
    numpy = sys.modules.get("numpy")
    scalar: Any = getattr(numpy, "generic", ())
    if type(value) is getattr(numpy, "ndarray", None):
        code = Code.NUMPY_ARRAY
    elif isinstance(value, scalar) and type(value) is value.dtype.type:
        code = Code.NUMPY_SCALAR
    else:
        return None
    return code, _array_head(value) + value.tobytes()


def _array_head(value: Any) -> bytes:
    """The name of the dtype and the number of dimensions, a byte before them each, and the shape."""
    dtype = value.dtype.str
    if not _NUMPY_TYPE.fullmatch(dtype) or value.dtype.names is not None:
        raise NotSerializable(
            f"NumPy's {value.dtype} cannot travel; convert it to a type of numbers of at most 8 "
            "bytes, or of texts or times of a fixed size"
        )
    name = dtype.encode()
    sizes = len(name), value.ndim
    return struct.pack(f">BB{len(name)}s{value.ndim}Q", *sizes, name, *value.shape)


def _head_size(head: bytes) -> int:
    """How long a head is of which the first two bytes are here."""
    return 2 + head[0] + 8 * head[1]


def _read_head(head: bytes, size: int) -> tuple[str, tuple[int, ...]]:
    """(dtype, shape) of an array whose payload has `size` bytes and begins with this."""
    length, dimensions = head[0], head[1]
    name, *shape = struct.unpack_from(f">{length}s{dimensions}Q", head, 2)
    dtype = name.decode("ascii")
    known = _NUMPY_TYPE.fullmatch(dtype)
    if known is None:
        raise ProtocolError(f"a NumPy array of type {dtype!r} arrived; such arrays do not travel")
    if known["text"]:
        each = int(known["length"]) * (4 if known["text"] == "U" else 1)
    else:
        each = int(known["plain"][1:])
    if prod(shape) * each != size - _head_size(head):
        raise ProtocolError(f"a NumPy array of shape {shape} arrived with other data than that")
    return dtype, tuple(shape)


def _numpy() -> Any:
    """NumPy, imported on demand; whether it is there is this process's own matter."""
    try:
        return _load("numpy")
    except Exception as error:
        raise Unreadable(
            f"it has a NumPy array, and numpy cannot be imported here ({error!r}): install it for "
            "all processes"
        ) from error


def _numpy_array(payload: bytes) -> Any:
    """A fresh, writable array in C order."""
    dtype, shape = _read_head(payload, len(payload))
    numpy = _numpy()
    start = _head_size(payload)
    if start == len(payload):
        return numpy.zeros(shape, dtype)
    items = numpy.frombuffer(payload, dtype, offset=start).reshape(shape)
    if dtype[1] == "b":  # a byte that is neither 0 nor 1 makes no bool
        return items.view("u1") != 0
    return _checked(items.copy())


def _checked(items: Any) -> Any:
    """An array that has come. Raises ProtocolError for a text that is none."""
    if items.dtype.kind == "U":
        numbers = items.reshape(-1).view(items.dtype.byteorder.replace("|", "=") + "u4")
        if numbers.size and numbers.max() > sys.maxunicode:
            raise ProtocolError("a NumPy array of texts arrived that are no Unicode")
    return items


def parts_of_array(value: Any, size: int) -> tuple[int, Iterable[Any]] | None:
    """(bytes, buffers one after the other) of a NumPy array of more than `size` bytes.

    The parts are cut where the array lies; of one that does not lie in C order each is a copy.
    """
    numpy = sys.modules.get("numpy")
    if type(value) is not getattr(numpy, "ndarray", None) or value.nbytes <= size:
        return None
    head = _array_head(value)
    return len(head) + value.nbytes, _parts(head, value, size)


def _parts(head: bytes, array: Any, size: int) -> Iterable[Any]:
    yield head
    if array.flags.c_contiguous:
        yield array.reshape(-1).view("u1")
        return
    step = max(1, size // array.itemsize)
    for begin in range(0, array.size, step):
        yield array.flat[begin : begin + step].view("u1")


class ArraySink:
    """Makes a NumPy array of a payload that comes bit by bit; `size` is how long it will be."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._head = b""
        self._array: Any = None
        self._items: memoryview | None = None
        self._at = 0

    def write(self, data: bytes) -> None:
        """The next bytes. Raises ProtocolError, and whatever NumPy does."""
        if self._items is None:
            data = self._begin(data)
        if self._items is not None:
            self._items[self._at : self._at + len(data)] = data
            self._at += len(data)

    def _begin(self, data: bytes) -> bytes:
        """Read the head, and take address space for the rest; returns what is left of the data."""
        self._head += data
        end = _head_size(self._head) if len(self._head) >= 2 else 2
        if len(self._head) < max(3, end):
            return b""
        dtype, shape = _read_head(self._head[:end], self._size)
        self._array = _numpy().empty(shape, dtype)
        self._items = memoryview(self._array.reshape(-1).view("u1"))
        return self._head[end:]

    def close(self) -> Any:
        """The array. Raises ProtocolError if it is not whole."""
        array, self._items = self._array, None
        if array is None or self._at != array.nbytes:
            raise ProtocolError("a NumPy array arrived that is cut short")
        if array.dtype.kind == "b" and array.size and array.view("u1").max() > 1:
            array.view("u1")[...] = array.view("u1") != 0  # no other byte makes a bool
        return _checked(array)
