"""`join(at=...)`: the meeting place's lock, and which directory a group has."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import signal
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TextIO

import pytest

import orcalike as orca
from orcalike.session.deadline import Deadline
from orcalike.session.entering import Entering
from orcalike.session.entry import Deserted
from orcalike.session.meeting import LOCK, MeetingPlace


def is_locked(place: Path) -> bool:
    """Whether a process holds the lock, whichever that is."""
    with (place / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_the_lock_is_held_at_each_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[bool] = []
    join = Entering.join

    def deserted_once(entering: Entering, deadline: Deadline) -> object:
        locked.append(is_locked(tmp_path))
        if len(locked) == 1:
            entering._session.close()
            raise Deserted("all members have left")
        return join(entering, deadline)

    monkeypatch.setattr(Entering, "join", deserted_once)
    with orca.join(at=f"unix:{tmp_path}", timeout="90s"):
        assert not is_locked(tmp_path)
    assert locked == [True, True]


def test_the_lock_is_held_at_each_try_of_a_coroutine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[bool] = []
    join: Callable[[Entering, Deadline], Awaitable[Any]] = Entering.join_on_loop

    async def deserted_once(entering: Entering, deadline: Deadline) -> object:
        locked.append(is_locked(tmp_path))
        if len(locked) == 1:
            entering._session.close()
            raise Deserted("all members have left")
        return await join(entering, deadline)

    async def member() -> None:
        async with orca.join(at=f"unix:{tmp_path}", timeout="90s"):
            assert not is_locked(tmp_path)

    monkeypatch.setattr(Entering, "join_on_loop", deserted_once)
    asyncio.run(member())
    assert locked == [True, True]


def test_the_lock_is_taken_anew_if_it_was_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member that had a view gave it back; then it was expelled before it had joined."""
    locked: list[bool] = []
    join = Entering.join

    def deserted_after_a_view(entering: Entering, deadline: Deadline) -> object:
        locked.append(is_locked(tmp_path))
        view = join(entering, deadline)
        if len(locked) == 1:
            entering._session.leave()
            raise Deserted("all members have left")
        return view

    monkeypatch.setattr(Entering, "join", deserted_after_a_view)
    with orca.join(at=f"unix:{tmp_path}", timeout="90s"):
        assert not is_locked(tmp_path)
    assert locked == [True, True]


def test_each_name_has_a_directory_of_its_own(tmp_path: Path) -> None:
    at = f"unix:{tmp_path}"
    with (
        orca.join(at=at, timeout="60s") as group,
        orca.join("default", at=at, timeout="60s") as same,
    ):
        assert [group.size, same.size] == [2, 2]
        with (
            orca.join("other", at=at, timeout="60s") as first,
            orca.join("other", at=at, timeout="60s") as second,
        ):
            assert {member.incarnation for member in first.members} == {
                first.me.incarnation,
                second.me.incarnation,
            }
            with orca.join("third", at=at, timeout="60s") as alone:
                assert (alone.size, alone.rank) == (1, 0)
        assert group.size == 2
        with orca.join(
            at=at, timeout="60s"
        ) as another:  # what the others have left is no socket of this group
            assert another.size == 3


def test_ctrl_c_ends_waiting_for_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another group is open its handler waits for the core, in which this thread only waits."""
    take, tried = MeetingPlace._take, 0

    def take_and_interrupt(place: MeetingPlace, lock: TextIO, deadline: Deadline) -> bool:
        nonlocal tried
        tried += 1
        if tried == 2:
            signal.raise_signal(signal.SIGINT)
        return take(place, lock, deadline)

    with orca.join(), contextlib.ExitStack() as lock:
        MeetingPlace(f"unix:{tmp_path}").enter(lock, Deadline(None))
        monkeypatch.setattr(MeetingPlace, "_take", take_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            orca.connect(at=f"unix:{tmp_path}", timeout="60s")


async def test_a_coroutine_that_is_cancelled_waits_for_the_lock_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, waits = MeetingPlace._take, asyncio.Event()

    def take_or_wait(place: MeetingPlace, lock: TextIO, deadline: Deadline) -> bool:
        taken = take(place, lock, deadline)
        if not taken:
            waits.set()
        return taken

    monkeypatch.setattr(MeetingPlace, "_take", take_or_wait)
    with contextlib.ExitStack() as lock:
        MeetingPlace(f"unix:{tmp_path}").enter(lock, Deadline(None))
        joining = orca.join(at=f"unix:{tmp_path}", timeout="60s")
        task = asyncio.create_task(joining.__aenter__())
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not [each for each in threading.enumerate() if each.name.startswith("asyncio")]
    assert not is_locked(tmp_path)
