"""A call to the group whose time limit passes ends as it did at its place in the order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike.objects import Counter, Queue
from orcalike.runtime.invocation import Invocation
from orcalike.session.group_calls import Find, _Call
from orcalike.testing import Members
from tests.lib.processes import DEADLINE
from tests.lib.slow_threads import Slow, slowed, two_members

Share = Callable[[], object]


def finding(group: orca.Group, before_withdrawal: Share) -> _Call[Counter]:
    """A find that calls `before_withdrawal` when its limit has passed, and is withdrawn right after that."""
    sender = group._runtime.sender
    find = Find(group._runtime)

    class Late:
        """What is sent, as far as a caller whose limit passes sees it."""

        def __init__(self, invocation: Invocation[Counter]) -> None:
            self.invocation, self.withdrawn = invocation, False

        def result(self, timeout: float | None = None) -> Counter:
            return self.invocation.result(timeout)

        def cancel(self) -> bool:
            before_withdrawal()
            self.withdrawn = True
            return self.invocation.cancel() or True

        def __await__(self) -> Generator[Any, None, Counter]:
            try:
                if not self.withdrawn:
                    yield from asyncio.get_running_loop().create_future().__await__()
            except asyncio.CancelledError:
                self.cancel()
                raise
            return (yield from self.invocation.__await__())

    start: Callable[[], object] = lambda: Late(find.nowait(Counter, "it"))
    return _Call(sender, "find 'it'", start, "no member has shared it")  # type: ignore[arg-type]


@pytest.mark.parametrize("on_loop", [False, True])
@pytest.mark.parametrize("other", [False, True])
def test_what_comes_before_the_withdrawal_is_the_outcome(
    caplog: pytest.LogCaptureFixture, *, other: bool, on_loop: bool
) -> None:
    caplog.set_level(logging.WARNING)
    with contextlib.closing(Members(1)) as members:
        group = members[0]

        def share() -> None:
            group.share.nowait(Queue if other else Counter, "it")

        def find() -> Counter:
            call = finding(group, share)
            return asyncio.run(call.wait_on_loop(0.01)) if on_loop else call.wait(0.01)

        if other:
            with pytest.raises(orca.ClassMismatch):
                find()
        else:
            assert isinstance(find(), Counter)
    assert "was not asked for" not in caplog.text


@orca.atomic
def look_at(slow: Slow, counter: Counter) -> int:
    return slow.steps + counter.value


@pytest.mark.parametrize("call", ["fence", "barrier", "atomic", "write"])
def test_a_thread_with_a_limit_does_not_run_what_others_wrote_before(
    tmp_path: Path, call: str
) -> None:
    """So the limit holds: another thread runs it, which may not end."""
    with two_members(tmp_path) as (first, second):
        slow, counter = first.share(Slow, "slow"), first.share(Counter, "counter")
        other = second.share(Slow, "slow")
        calls: dict[str, Callable[[], object]] = {
            "fence": lambda: first.fence(timeout=DEADLINE),
            "barrier": lambda: first.barrier(timeout=0.01),
            "atomic": lambda: look_at.options(timeout=DEADLINE)(slow, counter),
            "write": lambda: counter.add.options(timeout=DEADLINE)(1),
        }

        def limited() -> None:
            for _ in range(20):
                other.step()
                slowed.append(threading.current_thread())
                with contextlib.suppress(TimeoutError):
                    calls[call]()
                slowed.clear()

        thread = threading.Thread(target=limited, daemon=True)
        thread.start()
        thread.join(DEADLINE / 4)
        assert not thread.is_alive()
