"""Marshalling of NumPy arrays and scalars: what travels, and what is refused when it arrives."""

from __future__ import annotations

import struct
import sys
from typing import Any
from uuid import UUID

import msgpack
import numpy
import pytest

from orcalike.runtime.errors import NotSerializable, Unreadable
from orcalike.runtime.extension_codes import Code
from orcalike.transport.errors import ProtocolError
from tests.lib.marshal_values import (
    codec,
    travelled,
)


@pytest.mark.parametrize(
    "array",
    [
        numpy.arange(24, dtype="i4").reshape(2, 3, 4),
        numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)),
        numpy.arange(10, dtype="u2")[::-3],
        numpy.array([True, False]),
        numpy.array([1 + 2j, numpy.nan], dtype="c8"),
        numpy.array([1.5, -0.0], dtype=">f8"),
        numpy.array(3.0),
        numpy.empty((0, 5), dtype="f2"),
        numpy.array(["text", "ünïcode", ""]),
        numpy.array([["a", "b"], ["c", "𝄞"]], dtype=">U7"),
        numpy.array([b"bytes", b""]),
        numpy.array(["", ""], dtype="U0"),
        numpy.array(["2024-01-01", "NaT"], dtype="M8[D]"),
        numpy.array([1, 2], dtype=">m8[25us]"),
        numpy.array([3], dtype="i8").view("m8"),
    ],
    ids=lambda it: f"{it.dtype}{it.shape}",
)
def test_arrays_arrive_fresh_writable_and_in_c_order(array: Any) -> None:
    array.flags.writeable = False
    arrived = travelled(array)
    assert arrived.dtype == array.dtype
    assert arrived.shape == array.shape
    assert arrived.tobytes() == array.tobytes()
    assert arrived.flags.writeable
    assert arrived.flags.c_contiguous
    assert arrived.base is None


@pytest.mark.parametrize(
    "scalar",
    [
        numpy.float64(-0.0),
        numpy.int8(-3),
        numpy.bool_(True),
        numpy.str_("ä"),
        numpy.bytes_(b"x"),
        numpy.array("2024-01-01T00", "M8[25us]")[()],
        numpy.timedelta64("NaT", "D"),
    ],
)
def test_numpy_scalars(scalar: Any) -> None:
    arrived = travelled([scalar])[0]
    assert type(arrived) is type(scalar)
    assert arrived.tobytes() == scalar.tobytes()


@pytest.mark.parametrize(
    "array",
    [numpy.array([object()]), numpy.zeros(2, dtype=[("a", "i4")]), numpy.zeros(2, dtype="g"),
     numpy.zeros(2, dtype="V3")],
    ids=lambda it: str(it.dtype),
)  # fmt: skip
def test_other_numpy_types_do_not_travel(array: Any) -> None:
    with pytest.raises(NotSerializable, match=r"argument 1 of f: .*(cannot travel|only a plain)"):
        codec.encode([array], "f")


def test_numpy_is_not_imported_for_other_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numpy")
    assert travelled([1, {2.0}, UUID(int=1)]) == [1, {2.0}, UUID(int=1)]
    assert "numpy" not in sys.modules


@pytest.mark.parametrize("rest", [b"", b"\x01"])
def test_what_this_process_lacks_is_its_own_matter(
    monkeypatch: pytest.MonkeyPatch, rest: bytes
) -> None:
    """It is no fault of the message, and which of the values it is is known."""
    data = codec.encode([7, numpy.zeros(3)], "f") + rest
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(Unreadable, match="install it for all processes") as caught:
        codec.decode(data)
    assert (caught.value.argument, caught.value.values) == (2, (7,))


def numpy_payload(dtype: bytes, shape: tuple[int, ...], data: bytes) -> bytes:
    sizes = len(dtype), len(shape)
    payload = struct.pack(f">BB{len(dtype)}s{len(shape)}Q", *sizes, dtype, *shape) + data
    return bytes(msgpack.packb(msgpack.ExtType(Code.NUMPY_ARRAY, payload)))


@pytest.mark.parametrize(
    "data",
    [
        numpy_payload(b"|O", (1,), b"\0" * 8),
        numpy_payload(b"<f8", (2,), b"\0" * 8),
        numpy_payload(b"<f8", (2**63, 2), b""),
        numpy_payload(b"<f8", (2**61,), b"\0" * 8),
        numpy_payload(b"<f8", (0, 2**64 - 1), b""),
        numpy_payload(b"<f8", (1,) * 200, b"\0" * 8),
        numpy_payload(b"f8", (1,), b"\0" * 8),
        numpy_payload(b"\xff\xff", (1,), b"\0" * 8),
        numpy_payload(b"<U1", (1,), b"\xff" * 4),
        numpy_payload(b">U1", (1,), b"\0\x11\0\0"),
        numpy_payload(b"<U99999999999", (0,), b""),
        numpy_payload(b"<M8[xs]", (1,), b"\0" * 8),
        numpy_payload(b"<V4", (1,), b"\0" * 4),
        msgpack.packb(msgpack.ExtType(Code.NUMPY_ARRAY, b"\x03\x05<f8")),
        msgpack.packb(msgpack.ExtType(Code.NUMPY_ARRAY, b"\x03")),
        msgpack.packb(msgpack.ExtType(Code.NUMPY_ARRAY, b"")),
    ],
)
def test_an_array_that_is_not_one_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        codec.decode(data)


def test_a_bool_array_holds_bools_alone() -> None:
    (array,) = codec.decode(numpy_payload(b"|b1", (3,), b"\x00\x01\x07"))
    assert isinstance(array, numpy.ndarray)
    assert array.tobytes() == b"\x00\x01\x01"
