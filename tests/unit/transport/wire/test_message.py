"""Message: headers are pushed and popped in one buffer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orcalike.transport.wire.message import Message


@given(st.binary(max_size=300), st.lists(st.binary(max_size=120), max_size=8))
def test_headers_come_off_in_the_other_order(body: bytes, headers: list[bytes]) -> None:
    """However many: if the headroom does not do, the buffer grows."""
    message = Message(body)
    for header in headers:
        message.push_header(header)
    assert message.body == b"".join(reversed(headers)) + body
    for header in reversed(headers):
        assert message.pop_header(len(header)) == header
    assert message.body == body
    assert len(message) == len(body)


def test_a_header_longer_than_the_message_is_refused() -> None:
    message = Message(b"abc")
    for size in (4, 2**40, -1):
        with pytest.raises(ValueError, match=f"a header of {size} bytes from a message of 3"):
            message.pop_header(size)
    assert message.pop_header(3) == b"abc"
    assert message.body == b""


def test_a_copy_has_the_bytes_and_the_marks_and_is_its_own() -> None:
    message = Message(b"body")
    message.source, message.link, message.index = 3, 4, 5
    message.seqno, message.stamp, message.ticket = 2**64 - 1, 7, 8
    other = message.copy()
    message.push_header(b"head")
    assert other.body == b"body"
    assert (other.source, other.link, other.index) == (3, 4, 5)
    assert (other.seqno, other.stamp, other.ticket) == (2**64 - 1, 7, 8)


def test_a_message_without_a_source_yet() -> None:
    message = Message()
    assert (message.source, message.link, len(message)) == (-1, -1, 0)
    assert repr(message) == "<Message of 0 bytes>"
    assert Message(bytearray(b"x")).body == Message(memoryview(b"x")).body == b"x"


SIZES = st.sampled_from([0, 1, 400, 559, 560, 561, 2_000, 16_303, 16_304, 17_584, 17_585, 40_000])
"""Beside the sizes for which buffers are kept when their messages are gone."""


@given(st.lists(st.tuples(SIZES, st.booleans(), SIZES), max_size=60))
@example([(1, True, 0), (1, False, 0), (1, False, 0)])
def test_no_two_messages_have_one_buffer(steps: list[tuple[int, bool, int]]) -> None:
    """Messages come, grow and go: what each holds is its own, in whatever buffer it was put."""
    held: list[tuple[Message, bytes]] = []
    for number, (size, goes, header) in enumerate(steps):
        body, front = bytes([number]) * size, bytes([255 - number]) * header
        message = Message(body)
        message.push_header(front)
        held.append((message, front + body))
        if goes:
            del held[number % len(held)]
        del message
        for other, expected in held:
            assert other.body == expected


def test_what_a_burst_of_packets_took_goes_back_to_the_system() -> None:
    """Though the program keeps what it made meanwhile, and malloc would keep the gaps between."""
    before = memory()
    packets, kept = [], []
    for _ in range(1_000):
        packets.append(Message(bytes(17_000)))
        kept.append(bytearray(2_000))
    during = memory()
    packets.clear()
    assert during - before > 17_000_000
    assert memory() - before < 5_000_000


def memory() -> int:
    """Bytes that this process has for itself, beside its files."""
    found = re.search(r"Anonymous: +(\d+) kB", Path("/proc/self/smaps_rollup").read_text())
    assert found is not None
    return int(found[1]) * 1024
