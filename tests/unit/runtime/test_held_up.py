"""While a call waits its member watches the others, and so do these; else none does (ADR-26)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from tests.lib.held_up import Gate, held_up

LONG = 100.0


def comes(condition: Callable[[], bool]) -> bool:
    """Whether it comes true."""
    end = time.monotonic() + LONG
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def watching(*groups: orca.Group) -> list[bool]:
    """Whether each member watches the others."""
    return [group._session.stack.beats != () for group in groups]


def test_a_thread_that_waits_holds_its_member_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCALIKE_DETECTION", "0.1")
    with (
        orca.join(listen=f"unix:{tmp_path}/group") as first,
        orca.join(seeds=first.address, size=2, timeout=LONG) as second,
    ):
        assert comes(lambda: watching(first, second) == [False, False]), "it is at rest"
        with held_up(second):
            assert comes(lambda: watching(first, second) == [True, True])
        assert comes(lambda: watching(first, second) == [False, False]), "it is at rest again"


@pytest.mark.parametrize("wait", ["guard", "barrier", "find"])
def test_a_coroutine_that_waits_holds_its_member_up(
    wait: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCALIKE_DETECTION", "0.1")
    with (
        orca.join(listen=f"unix:{tmp_path}/group") as first,
        orca.join(seeds=first.address, size=2, timeout=LONG) as second,
    ):
        gate = second.share(Gate, "gate")
        assert comes(lambda: watching(first, second) == [False, False]), "it is at rest"

        async def wait_in_vain() -> None:
            calls: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
                "guard": lambda: gate.wait.aio(),
                "barrier": lambda: second.barrier.aio(),
                "find": lambda: second.find.aio(Gate, "never"),
            }
            waiting = asyncio.create_task(calls[wait]())
            await asyncio.sleep(0)
            assert await asyncio.to_thread(comes, lambda: watching(first, second) == [True, True])
            waiting.cancel()

        asyncio.run(wait_in_vain())
        assert comes(lambda: watching(first, second) == [False, False]), "it is at rest again"
