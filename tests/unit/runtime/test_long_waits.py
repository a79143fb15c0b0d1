"""What members say of calls that wait for each other: what is believed, and what is named."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import orcalike as orca
from orcalike.runtime.call import Call
from orcalike.runtime.codes import Code
from orcalike.runtime.long_waits import LongWaits


@orca.shared
class Lock:
    """One that is never opened."""

    def __init__(self) -> None:
        self.opened = False

    @orca.write
    def enter(self) -> None:
        pass

    @enter.when
    def _(self) -> bool:
        return self.opened

    @orca.read
    def look(self) -> int:
        return 1

    @look.when
    def _(self) -> bool:
        return self.opened


@pytest.mark.parametrize("said", [(7,), ([1],), ([1, 2],), ([1, "a", 3],), ("text",)])
def test_what_is_no_call_is_refused(
    said: tuple[object, ...], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A member that lies harms none: the group goes on."""
    with orca.join(listen=f"unix:{tmp_path}/group") as group:
        group._runtime.sender.post(Code.IDLE, said, "a lie", 0)
        group.fence()
        assert group._runtime.long_waits.idle == {}
    assert "waits for what is no call" in caplog.text


def test_a_call_that_nothing_can_let_go_on_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with orca.join(listen=f"unix:{tmp_path}/group") as group:
        lock = group.share(Lock, "lock")
        caplog.set_level(logging.WARNING, "orcalike")
        waits = lock.enter.nowait()
        group.fence()
        for _ in range(2):
            group._runtime.sender.post(
                Code.IDLE, ([waits.ticket, "Lock.enter of 'lock'"],), "idle", 0
            )
            group.fence()
        named = [text for text in caplog.messages if "wait for each other" in text]
        assert len(named) == 1
        assert "Lock.enter of 'lock'; nothing can let them go on" in named[0]
        waits.cancel()
        with pytest.raises(orca.InvocationCancelled):
            waits.result()


def test_a_read_that_waits_for_its_guard_for_long_says_so_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It raised AttributeError out of the call after 10 s, while the guard was still false."""
    with orca.join(listen=f"unix:{tmp_path}/group") as group:
        lock = group.share(Lock, "lock")
        caplog.set_level(logging.INFO, "orcalike")
        waits = lock.look.nowait()
        group.fence()
        long_waits = group._runtime.long_waits
        long_waits.began(waits)
        long_waits.still_waiting(waits)
        assert "Lock.look of 'lock' waits: its guard is false" in caplog.text
        assert [call.invocation for call in long_waits.parked()] == [waits]
        long_waits._report_idle()
        group.fence()
        assert "Lock.look of 'lock'; nothing can let them go on" in caplog.text
        waits.cancel()


async def test_many_coroutines_that_wait_for_the_same_are_one_line_and_one_look(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[LongWaits] = []
    parked = LongWaits.parked

    def counted(long_waits: LongWaits) -> Iterator[Call]:
        looks.append(long_waits)
        return parked(long_waits)

    async with orca.join() as group:
        lock = await group.share.aio(Lock, "lock")
        caplog.set_level(logging.INFO, "orcalike")
        waiting = [asyncio.ensure_future(lock.enter.aio()) for _ in range(50)]
        long_waits = group._runtime.long_waits
        while len(awaited := group._runtime.sender.awaited()) < 50:
            await asyncio.sleep(0)
        long_waits._looks = [awaited, awaited]
        caplog.clear()
        monkeypatch.setattr(LongWaits, "parked", counted)
        long_waits._look()
        assert len(looks) <= 3
        (line,) = [text for text in caplog.messages if "waits" in text]
        assert line.startswith("Lock.enter of 'lock' waits (50 calls): its guard is false; so are")
        assert line.endswith(" and 44 more")
    await asyncio.wait(waiting)
    assert all(isinstance(each.exception(), orca.GroupClosed) for each in waiting)
    assert "withdrawn, since its member leaves: Lock.enter (50 calls)" in caplog.text


def test_coroutines_that_wait_are_looked_at_without_a_timer_of_their_loop() -> None:
    """With one the kernel would set and cancel a timer each time that the loop sleeps."""

    async def take_part() -> None:
        async with orca.join() as group:
            lock = await group.share.aio(Lock, "lock")
            waiting = asyncio.ensure_future(lock.enter.aio())
            long_waits = group._runtime.long_waits
            while long_waits._look_at is None:  # until the loop has served the group
                await asyncio.sleep(0)
            assert not asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
            due = long_waits._look_at
            long_waits.expire(due - 1)  # another deadline of the stack
            assert (long_waits._look_at, long_waits._looks) == (due, [[], []])
            long_waits.expire(due)
            while not long_waits._looks[1]:
                await asyncio.sleep(0)
            assert [each.operation for each in long_waits._looks[1]] == [Lock.enter]
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(take_part())


def test_a_call_without_a_place_names_no_sequencer_if_there_is_none(
    tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = f"PACK:XFER:{order}:MBRSHIP:COM:unix"
    with orca.join(listen=f"unix:{tmp_path}/group", stack=stack) as group:
        runtime = group._runtime
        nowhere = SimpleNamespace(receipts=None, has_place=lambda invocation: False)
        rest = {name: getattr(runtime, name) for name in ("manager", "stack", "view")}
        waits = LongWaits(runtime)
        monkeypatch.setattr(waits, "_runtime", SimpleNamespace(sender=nowhere, **rest))
        invocation = group.share(Lock, "lock").look.nowait()
        why = waits._why(invocation, set())
        if order == "RING":
            assert why == "it has not come here in the order yet, which is in shared memory"
        else:
            assert why == f"it has no place in the order yet; {group.me} orders"
