"""Leaving a group with calls under way that cannot go on."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import orcalike as orca
from orcalike.session import own_calls
from orcalike.session.own_calls import OwnCalls
from orcalike.session.session import Session
from tests.lib.shared_classes import Counter
from tests.lib.time_limits import LIMIT


async def test_what_leaving_waited_for_is_not_reported_as_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says once that calls were under way; asyncio says nothing besides."""
    monkeypatch.setattr(own_calls, "LEAVE_WITHIN", 0.2)
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, what: reported.append(what))
    with caplog.at_level(logging.WARNING, "orcalike"):
        async with orca.join(listen=f"unix:{tmp_path}/group", resilience=1) as group:
            call = group.share.aio(Counter, "counter")  # a second member is missing
            task = asyncio.create_task(call)
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {task, asyncio.current_task()}
        assert not left, "what nothing waits for any more may be collected before it is over"
        with pytest.raises(orca.GroupClosed):
            await task
    gc.collect()
    await asyncio.sleep(0)
    assert reported == []
    assert "left with calls under way: the view has too few members" in caplog.text


@pytest.mark.parametrize("on_a_loop", [False, True])
def test_the_launcher_learns_of_it_before_calls_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_a_loop: bool
) -> None:
    """Else it may end the run as blocked for good (74) while the last of its ranks leave."""
    monkeypatch.setattr(own_calls, "LEAVE_WITHIN", 0.0)
    happened: list[str] = []
    is_stuck, report = OwnCalls._is_stuck, Session.report_leaving

    def looks(calls: OwnCalls) -> bool:
        happened.append("waits")
        return is_stuck(calls)

    def reports(session: Session) -> None:
        happened.append("leaves")
        report(session)

    monkeypatch.setattr(OwnCalls, "_is_stuck", looks)
    monkeypatch.setattr(Session, "report_leaving", reports)
    address = f"unix:{tmp_path}/group"

    async def join() -> None:
        async with orca.join(listen=address, resilience=1) as group:
            group.share.nowait(Counter, "counter")  # a second member is missing

    if on_a_loop:
        asyncio.run(join())
    else:
        with orca.join(listen=address, resilience=1) as group:
            group.share.nowait(Counter, "counter")
    assert happened[:2] == ["leaves", "waits"]


def test_leaving_that_ctrl_c_ends_says_nothing_of_what_it_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    group = orca.connect(listen=f"unix:{tmp_path}/group", resilience=1)
    call = group.share.nowait(Counter, "counter")  # a second member is missing
    is_stuck = OwnCalls._is_stuck

    def interrupt(calls: OwnCalls) -> bool:
        if calls._awaited is not None:
            signal.raise_signal(signal.SIGINT)
        return is_stuck(calls)

    monkeypatch.setattr(OwnCalls, "_is_stuck", interrupt)
    ended = ""
    with caplog.at_level(logging.WARNING, "orcalike"):
        try:
            group.close()
        except KeyboardInterrupt:
            ended = "by Ctrl-C"
        assert isinstance(call.exception(), orca.GroupClosed)
        del group  # nothing holds the fence any more that was waited for
        gc.collect()
    assert ended == "by Ctrl-C"
    assert "not asked for" not in caplog.text


async def test_an_event_loop_runs_while_hosted_processes_are_ended() -> None:
    """A process that takes no notice of SIGTERM has two seconds before it is killed."""
    ended, found = threading.Event(), list[bool]()
    ending = threading.Thread(target=ended.wait, args=(LIMIT,))
    ending.start()
    async with orca.join() as group:
        leave = group._session.leave_on_loop

        async def leave_and_look(within: float = 0.0) -> None:
            found.append(ended.is_set())
            await leave(within)

        group._hosted._begin_to_end = lambda: ending  # type: ignore[method-assign]
        group._session.leave_on_loop = leave_and_look  # type: ignore[method-assign]
        asyncio.get_running_loop().call_soon(ended.set)
        await group._leave_on_loop(orderly=False)  # as when the block ends by an exception
    assert found == [True]


@pytest.mark.parametrize(
    ("blocked", "lacks", "why"),
    [
        (((), "a rule"), False, "it is blocked"),
        (None, True, "the view has too few members for them"),
        (((), "a rule"), True, "it is blocked"),
    ],
)
def test_calls_that_cannot_go_on_are_left_behind(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    blocked: object,
    lacks: bool,
    why: str,
) -> None:
    """Once that has been so for a while."""
    monkeypatch.setattr(own_calls, "LEAVE_WITHIN", 0.01)
    session = SimpleNamespace(
        blocked=blocked,
        lacks_members_for_own=lambda: lacks,
        report_leaving=lambda: None,
        options=SimpleNamespace(name="g"),
    )
    calls = OwnCalls(cast(Any, None), cast(Any, session))
    monkeypatch.setattr(calls, "_fence_within", lambda seconds: None)  # there is no room for it
    calls.wait()
    (record,) = caplog.records
    assert record.getMessage() == f"the group 'g' was left with calls under way: {why}"
