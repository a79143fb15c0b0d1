"""A connection for which no channel can be made, as when no handshake can be imported: it is closed, and tried again."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.lib.end import End

KEY = bytes(range(32))
HANDSHAKE = "orcalike.transport.drivers.handshake"


@pytest.fixture
def ends() -> Iterator[tuple[End, End]]:
    """One that has made a group, and another one; both are closed with the test."""
    made = [End("tcp:127.0.0.1:0", KEY), End("tcp:127.0.0.1:0", KEY, joins=False, rank=1)]
    yield made[0], made[1]
    for end in made:
        end.pump.close_all()
    assert [end.pump.failure for end in made] == [None, None]


def join(first: End, second: End) -> None:
    """The second one joins through the first."""

    def is_in() -> object:
        first.pump.handle()
        return second.top.installed

    second.pump.call(second.stack.join, first.address)
    second.until(is_in)


def test_one_that_connects_says_so_and_tries_again(
    ends: tuple[End, End], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ends
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, HANDSHAKE, None)
        second.pump.call(second.stack.join, first.address)
        second.until(lambda: second.top.failed)
    assert "no handshake can be made" in second.top.failed[0]
    join(first, second)
    alarm_timer_and_listener = 3
    assert second.stack.bottom.peer_at(alarm_timer_and_listener) is not None, "no slot was lost"


def test_one_that_accepts_closes_it(ends: tuple[End, End], monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ends
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, HANDSHAKE, None)
        with first.connect() as sock:
            first.until(lambda: first.is_closed(sock))
    assert "no handshake can be made" in str(first.logged)
    join(first, second)
