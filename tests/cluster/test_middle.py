"""What lies between two members, and changes what they send, harms neither: they go on without it (S5, S6)."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

import pytest

import orcalike as orca
from orcalike.transport.drivers.handshake import ANSWER_SIZE, OPENING_SIZE
from tests.lib.middle import Change, Middle
from tests.lib.processes import until
from tests.lib.shared_classes import Counter

KEY = bytes(range(32))
STACK = "PACK:XFER:TOTAL:MBRSHIP:COM:tcp"
"""Members that share memory would take the near road, past what is in the middle."""


def flip(data: bytes, place: int) -> bytes:
    """One bit of one byte is another one; a place below 0 counts from the end."""
    place %= len(data)
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[orca.Group]:
    """The member that makes the group.

    A request whose end never comes is one that its sender's group waits for, until it is too far behind.
    """
    monkeypatch.setenv("ORCALIKE_SLOW_TIMEOUT", "5s")
    with orca.join(listen="tcp:127.0.0.1:0", key=KEY, stack=STACK) as group:
        yield group


@contextlib.contextmanager
def joined_through(group: orca.Group, change: Change) -> Iterator[tuple[orca.Group, Middle]]:
    """A member that has joined through what is in the middle."""
    middle = Middle(group.address, change)
    try:
        with orca.join(seeds=middle.address, key=KEY, timeout=200, stack=STACK) as other:
            yield other, middle
    finally:
        middle.close()


@pytest.mark.parametrize(
    ("direction", "size"), [("there", OPENING_SIZE), ("back", ANSWER_SIZE)], ids=["there", "back"]
)
def test_each_byte_of_the_handshake_counts(
    group: orca.Group, caplog: pytest.LogCaptureFixture, direction: str, size: int
) -> None:
    """With any of them changed no connection stands; the next one does."""
    with contextlib.ExitStack() as stack:
        for place in range(size):

            def change(
                connection: int, way: str, index: int, data: bytes, place: int = place
            ) -> list[bytes]:
                meddles = connection == 0 and way == direction and index == 0
                return [flip(data, place)] if meddles else [data]

            with joined_through(group, change) as (other, middle):
                assert middle.connections >= 2
                assert other.size == 2
            until(lambda: group.size == 1)
        stack.close()
    assert any("refused" in record.message for record in caplog.records)
    assert not [record for record in caplog.records if record.levelno > logging.WARNING]


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log has of records that cannot be opened."""
    return [line for line in caplog.messages if "refused: a record" in line]


Meddle = Callable[[bytes, bytes | None], list[bytes]]

#: What becomes of a record, and of the one that was kept back before it, if one was.
MEDDLED: dict[str, Meddle] = {
    "length": lambda data, kept: [flip(data, 0)],
    "first byte": lambda data, kept: [flip(data, 4)],
    "tag": lambda data, kept: [flip(data, -1)],
    "repeated": lambda data, kept: [data, data],
    "reordered": lambda data, kept: [] if kept is None else [data, kept],
    "left out": lambda data, kept: [] if kept is None else [data],
    "cut": lambda data, kept: [data[:-1]] if kept is None else [data],
    "without end": lambda data, kept: [b"\xff\xff\xff\x7f" + data],
}


@pytest.mark.parametrize("direction", ["there", "back"])
@pytest.mark.parametrize("how", MEDDLED)
def test_records_that_were_meddled_with_end_a_connection_and_nothing_else(
    group: orca.Group, caplog: pytest.LogCaptureFixture, how: str, direction: str
) -> None:
    """Both members write on, perhaps after one has joined again; what each has written is there once."""
    kept: list[bytes] = []
    begun = False

    def change(connection: int, way: str, index: int, data: bytes) -> list[bytes]:
        if not begun or connection or way != direction or index == 0 or len(kept) > 1:
            return [data]
        kept.append(data)
        return MEDDLED[how](data, kept[0] if len(kept) > 1 else None)

    with joined_through(group, change) as (other, _):
        counters = [each.share(Counter, "counter") for each in (group, other)]
        begun = True
        tried = done = 0
        while done < 100 or not refusals(caplog):
            for each, counter in zip((group, other), counters, strict=True):
                tried += 3
                try:  # several, since one that is kept back goes on with the next
                    calls = [counter.add.nowait(1) for _ in range(3)]
                    for call in calls:
                        call.result()
                        done += 1
                except orca.Expelled:  # a link that breaks is a suspicion, and half of two goes on
                    each.rejoin(timeout=200)
        other.fence()
        group.fence()
        assert done <= counters[0].get() == counters[1].get() <= tried
        assert group.size == other.size == 2
    assert not [record for record in caplog.records if record.levelno > logging.WARNING]
