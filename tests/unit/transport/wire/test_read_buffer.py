"""An object's bytes, read in place."""

from __future__ import annotations

import pickle
from array import array
from typing import Any

import pytest

from orcalike.transport.wire.message import Message
from orcalike.transport.wire.read_buffer import ReadBuffer


def test_what_is_read_stays_as_long_as_it_is_read() -> None:
    data = bytearray(b"some")
    read = ReadBuffer(data)
    with pytest.raises(BufferError):
        data.extend(b" more")
    del read
    data.extend(b" more")
    assert data == b"some more"


@pytest.mark.parametrize("value", ["text", None, 7, memoryview(b"abcd")[::2]])
def test_what_has_no_bytes_in_one_piece_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, BufferError)):
        ReadBuffer(value)
    with pytest.raises((TypeError, BufferError)):
        Message(value)


@pytest.mark.parametrize("value", [b"", b"ab", bytearray(b"ab"), memoryview(b"abc")[1:]])
def test_a_message_has_a_copy(value: bytes | bytearray | memoryview) -> None:
    assert Message(value).body == bytes(value)


def test_items_of_several_bytes_count_as_bytes() -> None:
    assert len(Message(memoryview(array("H", [1, 2, 3])))) == 6


def test_what_is_compiled_is_not_pickled() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Message(b"body"))
