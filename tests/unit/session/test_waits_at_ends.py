"""What is waited for comes at once, though the member that was to bring it has ended or stands still, and wakes no other."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from orcalike.objects import Lock
from tests.lib.fresh_members import Bench, OnLoop
from tests.lib.processes import DEADLINE, until
from tests.lib.programs import Programs


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(tmp_path)
    yield programs
    programs.kill_all()


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_write_and_a_lock_of_a_member_that_wakes_none(
    way: signal.Signals,
    stack: ExitStack,
    tmp_path: Path,
    programs: Programs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its write is in the order; its lock is another one's; and at a barrier it is not waited for."""
    monkeypatch.setenv("ORCALIKE_DETECTION", "0.5")
    bench = Bench(stack, tmp_path)
    on_loop = OnLoop(bench)
    stack.callback(on_loop.leave)
    victim = programs.start("last_write.py", bench.groups[0].address, str(int(way)))
    assert victim.next_fact() == {"holds": True}
    lock = on_loop.start(lambda: on_loop.group.share.aio(Lock, "lock")).result(DEADLINE)
    on_loop.after_news()
    locked = on_loop.start(lock.acquire.aio)
    until(lambda: on_loop.group._session.stack.patient.count == 1, "the coroutine waits")
    met = bench.threads.submit(bench.groups[0].barrier)
    taken = bench.start(1, bench.boxes[1].take)
    programs.call("write")
    assert taken.result(DEADLINE) == 7
    assert locked.result(DEADLINE)
    others = [bench.threads.submit(group.barrier) for group in bench.groups[1:]]
    on_loop.start(on_loop.group.barrier.aio).result(DEADLINE)
    for each in (met, *others):
        each.result(DEADLINE)
    if way == signal.SIGSTOP:
        os.kill(victim.pid, signal.SIGCONT)
        assert victim.next_fact() == {"back": True}
        bench.boxes[0].put(8)
        assert victim.next_fact() == {"taken": 8}
