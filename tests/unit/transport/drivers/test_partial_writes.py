"""A message that is written past the queue of its channel, where the socket takes a part of it or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orcalike.transport.wire.message import Message
from tests.lib.end import End

LARGE = 4 << 20
"""Bytes: more than a socket takes at once."""


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[End, End]]:
    """Two members of a group, of which the first one orders."""
    first = End(f"unix:{tmp_path}/first", detection=60_000_000_000)
    second = End(f"unix:{tmp_path}/second", joins=False, rank=1, detection=60_000_000_000)
    second.pump.call(second.stack.join, first.address)
    together(first, second, lambda: all(views(end) == 2 for end in (first, second)))
    yield first, second
    for end in (first, second):
        end.pump.close_all()
        assert end.pump.failure is None


def views(end: End) -> int:
    """How many members its view has."""
    return len(end.top.installed.members) if end.top.installed else 0


def together(first: End, second: End, holds: Callable[[], object]) -> None:
    """Drive both until that holds; no connection is refused meanwhile."""

    def step() -> object:
        second.pump.handle()
        assert first.logged == second.logged == []
        return holds()

    first.until(step)


def cast(end: End, body: bytes) -> None:
    """Cast it, and write what the sockets take."""
    end.pump.call(lambda now: end.stack.cast(Message(body), now))


def bodies(end: End) -> list[bytes]:
    """What was delivered there, in its order."""
    return [event[3] for event in end.top.history if isinstance(event, tuple)]


def test_it_goes_on_where_it_stopped_and_before_what_comes_next(ends: tuple[End, End]) -> None:
    """The rest waits in the queue; so does what is sent meanwhile."""
    first, second = ends
    sent = [b"a" * LARGE, b"behind", b"b" * LARGE, b"last"]
    for body in sent:
        cast(first, body)
    assert not first.pump.is_drained(), "the sockets took all at once"
    together(first, second, lambda: len(bodies(second)) == len(sent))
    assert bodies(first) == bodies(second) == sent
    assert first.pump.is_drained()


def test_what_follows_goes_past_the_queue_again(ends: tuple[End, End]) -> None:
    """Once all is written."""
    first, second = ends
    sent = [b"a" * LARGE, b"later"]
    cast(second, sent[0])
    assert not second.pump.is_drained(), "the sockets took all at once"
    together(first, second, lambda: len(bodies(second)) == 1)
    cast(second, sent[1])
    assert second.pump.is_drained()
    together(first, second, lambda: len(bodies(second)) == 2)
    assert bodies(first) == bodies(second) == sent
