"""`join(at=...)`: the meeting place's lock, and which directory a group has."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike.endpoint import Endpoint
from orcalike.meeting import LOCK, Deserted


def is_locked(place: Path) -> bool:
    """Whether somebody holds the lock, whichever process that is."""
    with (place / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_the_lock_is_held_at_each_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[bool] = []
    join = Endpoint.join

    def deserted_once(endpoint: Endpoint) -> object:
        locked.append(is_locked(tmp_path))
        if len(locked) == 1:
            endpoint.close()
            raise Deserted("all members have left")
        return join(endpoint)

    monkeypatch.setattr(Endpoint, "join", deserted_once)
    with orca.join(at=f"unix:{tmp_path}", timeout="90s"):
        assert not is_locked(tmp_path)
    assert locked == [True, True]


def test_the_lock_is_held_at_each_try_of_a_coroutine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[bool] = []
    join: Callable[[Endpoint], Awaitable[Any]] = Endpoint.join_on_loop

    async def deserted_once(endpoint: Endpoint) -> object:
        locked.append(is_locked(tmp_path))
        if len(locked) == 1:
            endpoint.close()
            raise Deserted("all members have left")
        return await join(endpoint)

    async def member() -> None:
        async with orca.join(at=f"unix:{tmp_path}", timeout="90s"):
            assert not is_locked(tmp_path)

    monkeypatch.setattr(Endpoint, "join_on_loop", deserted_once)
    asyncio.run(member())
    assert locked == [True, True]


def test_the_lock_is_taken_anew_if_it_was_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member that had a view gave it back; then it was expelled before it had joined."""
    locked: list[bool] = []
    join = Endpoint.join

    def deserted_after_a_view(endpoint: Endpoint) -> object:
        locked.append(is_locked(tmp_path))
        view = join(endpoint)
        if len(locked) == 1:
            endpoint.leave()
            raise Deserted("all members have left")
        return view

    monkeypatch.setattr(Endpoint, "join", deserted_after_a_view)
    with orca.join(at=f"unix:{tmp_path}", timeout="90s"):
        assert not is_locked(tmp_path)
    assert locked == [True, True]
