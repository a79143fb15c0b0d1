"""Members that a test drives, and members in processes of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lib.member_process import (
    End,
    Ends,
    Sender,
)


@pytest.fixture
def make_end() -> Iterator[Ends]:
    """Makes members, which are closed with the test, however that ends."""
    made: list[End] = []

    def make(address: str, *times: int) -> End:
        made.append(End(address, *times))
        return made[-1]

    yield make
    for end in made:
        end.pump.close_all()
    assert [end.pump.failure for end in made] == [None] * len(made)


@pytest.fixture
def end(make_end: Ends, tmp_path: Path, request: pytest.FixtureRequest) -> End:
    """The member that watches; it makes the group."""
    made = make_end(getattr(request, "param", f"unix:{tmp_path}/first"))
    made.join("")
    return made


@pytest.fixture
def make_sender(tmp_path: Path) -> Iterator[Callable[[End], Sender]]:
    """Starts members in processes of their own, which are closed with the test, however that ends."""
    with contextlib.ExitStack() as stack:

        def make(end: End) -> Sender:
            tcp = end.member.address.startswith("tcp")
            made = Sender(end, "tcp:127.0.0.1:0" if tcp else f"unix:{tmp_path}/second")
            stack.callback(made.close)
            made.come_in()
            return made

        yield make


@pytest.fixture
def sender(end: End, make_sender: Callable[[End], Sender]) -> Sender:
    """A member that has joined, from a process of its own."""
    return make_sender(end)
