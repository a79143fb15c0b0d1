"""`run`: a program's coroutine, on uvloop if that is installed."""

from __future__ import annotations

import asyncio
import sys

import pytest

import orcalike as orca
from orcalike.objects import Counter


async def main() -> tuple[str, int]:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        loop = asyncio.get_running_loop()
        return type(loop).__module__.partition(".")[0], await counter.add.aio(2)


def test_on_uvloop() -> None:
    pytest.importorskip("uvloop")
    assert orca.run(main()) == ("uvloop", 2)


def test_it_takes_a_coroutine() -> None:
    with pytest.raises(TypeError, match=r"not <function main at .*>: write run\(main\(\)\)"):
        orca.run(main)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error")
def test_it_is_not_for_a_loop_that_runs() -> None:
    async def run() -> None:
        orca.run(main())

    with pytest.raises(RuntimeError, match="runs on this thread already: await the coroutine"):
        asyncio.run(run())


def test_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert orca.run(main()) == ("asyncio", 2)
