"""Calls that queue for an object's mutex as their member leaves the group, or joins it anew."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.runtime.replica import replica_of
from orcalike.runtime.task import queued_at
from tests.lib.shared_classes import Gate, pass_gate

LIMIT = 30

not_held_up: list[object] = []
"""Objects whose operations pass the gate."""


@orca.shared
class Box:
    """One of its operations holds it up."""

    def __init__(self) -> None:
        self.count = 0

    @orca.write(popup=True)
    def add_slowly(self) -> int:
        if self not in not_held_up:  # orca: unchecked
            pass_gate("slow")  # orca: unchecked
        self.count += 1
        return self.count

    @orca.write
    def add(self) -> int:
        self.count += 1
        return self.count

    @orca.read
    def value(self) -> int:
        return self.count


@orca.shared
class Odd:
    """Its operation fails in one process alone."""

    def __init__(self) -> None:
        self.fails = False

    @orca.write
    def run(self) -> None:
        if self.fails:
            raise RecursionError


@orca.atomic
def add_to_both(one: Box, other: Box) -> int:
    """Needs the mutexes of two."""
    return one.add() + other.add()


Outcomes = dict[str, object]


def begin(outcomes: Outcomes, name: str, call: Callable[[], object]) -> threading.Thread:
    """Call in a thread, which notes what comes of it."""

    def run() -> None:
        try:
            outcomes[name] = call()
        except orca.OrcalikeError as error:
            outcomes[name] = type(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def wait_for_queue(box: Box, length: int) -> None:
    """Until so many tasks queue for its mutex."""
    replica = replica_of(box)
    assert replica is not None
    pause = threading.Event()
    for _ in range(100 * LIMIT):
        if len(queued_at(replica)) >= length:
            return
        pause.wait(0.01)
    raise AssertionError(queued_at(replica))


class Leaves(Exception):
    """What the program leaves its group by: at once, without waiting for what is under way."""


def test_the_group_is_left(order: str, caplog: pytest.LogCaptureFixture) -> None:
    """They end with GroupClosed, and none of them runs on what the program has then."""
    outcomes: Outcomes = {}
    threads: list[threading.Thread] = []
    with Gate("slow") as gate:
        with (
            contextlib.suppress(Leaves),
            orca.join(stack=f"PACK:XFER:{order}:MBRSHIP:COM:unix") as group,
        ):
            box, other = group.share(Box, "box"), group.share(Box, "other")
            slow = begin(outcomes, "slow", box.add_slowly)
            gate.wait_until_reached()
            calls: dict[str, Callable[[], object]] = {
                "write": box.add,
                "limited": box.add.options(timeout=LIMIT),
                "read": box.value,
                "fence": group.fence,
                "atomic": lambda: add_to_both(other, box),
                "drop": lambda: group.drop(box),
            }
            for name, call in calls.items():
                threads.append(begin(outcomes, name, call))
                wait_for_queue(box, len(threads))
            raise Leaves
        for thread in threads:
            thread.join(LIMIT)
        assert outcomes == dict.fromkeys(calls, orca.GroupClosed)
        gate.open()
        slow.join(LIMIT)
    assert outcomes["slow"] == 1
    assert (box.count, other.count) == (1, 0)
    assert "asked for" not in caplog.text


def test_the_member_joins_anew(tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was under way has ended with its error, and reads go on; also one that begins to wait just then."""
    outcomes: Outcomes = {}
    stack = f"PACK:XFER:{order}:MBRSHIP:COM:unix"
    with (
        orca.join(listen=f"unix:{tmp_path}/group", stack=stack) as first,
        orca.join(seeds=first.address, stack=stack, timeout=LIMIT) as second,
        Gate("slow") as gate,
    ):
        there = first.share(Odd, "odd")
        box, odd = second.share(Box, "box"), second.find(Odd, "odd")
        odd.fails = True
        not_held_up[:] = [first.find(Box, "box")]
        slow = begin(outcomes, "slow", box.add_slowly)
        gate.wait_until_reached()
        write = begin(outcomes, "write", box.add)
        wait_for_queue(box, 1)
        fence = begin(outcomes, "fence", second.fence)
        wait_for_queue(box, 2)
        read = begin(outcomes, "read", box.value)
        wait_for_queue(box, 3)
        late = box.value.nowait()
        there.run()
        for thread in (write, fence):
            thread.join(LIMIT)
        assert outcomes == dict.fromkeys(("write", "fence"), orca.ReplicaDivergence)
        runtime = second._runtime
        forget = runtime.manager.forget

        def wait_meanwhile() -> None:
            runtime.long_waits.began(late)
            forget()
            runtime.long_waits.over(late)

        monkeypatch.setattr(runtime.manager, "forget", wait_meanwhile)
        second.rejoin(timeout=LIMIT)
        gate.open()
        assert late.result(LIMIT) in {1, 2}
        for thread in (slow, read):
            thread.join(LIMIT)
        assert outcomes["read"] in {1, 2}
        assert box.add() == 3
        assert not odd.fails


@pytest.mark.parametrize("awaits", [False, True])
def test_a_forked_child_has_no_outcomes(
    group: orca.Group, capfd: pytest.CaptureFixture[str], *, awaits: bool
) -> None:
    """It learns so, and does not wait for calls of its parent."""
    box = group.share(Box, "box")
    with Gate("slow") as gate:
        slow = box.add_slowly.nowait()
        gate.wait_until_reached()
        calls = [slow, box.add.nowait(), box.value.nowait()]
        box.add.nowait()

        async def outcome(call: orca.Invocation[int]) -> int:
            return await call

        child = os.fork()
        if child == 0:
            signal.alarm(LIMIT)
            ended = 0
            for call in calls:
                try:
                    asyncio.run(outcome(call)) if awaits else call.result()
                except orca.GroupClosed:
                    ended += 1
            gc.collect()
            os._exit(ended)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(calls)
        assert "asked for" not in capfd.readouterr().err
        gate.open()
        assert [call.result(LIMIT) for call in calls] == [1, 2, 2]
