"""An atomic function on shared objects, called in each of the three ways."""

from __future__ import annotations

import pytest

import orcalike as orca
from orcalike.runtime.codes import Code
from tests.lib.shared_classes import Counter, transfer


def test_threads_wait_for_the_outcome() -> None:
    with orca.join() as group:
        source, target = group.share(Counter, "source", 9), group.share(Counter, "target", 0)
        transfer(source, target, 2)
        transfer.options(timeout=5.0)(source, target, 3)
        transfer.nowait(source, target).result()
        assert (source.get(), target.get()) == (3, 6)


async def test_coroutines_await_it_and_never_block() -> None:
    async with orca.join() as group:
        source = await group.share.aio(Counter, "source", 9)
        target = await group.share.aio(Counter, "target", 0)
        await transfer.aio(source, target, 4)
        with pytest.raises(orca.BlockingInLoop):
            transfer(source, target, 4)
        await group.fence.aio()
        assert (source.get(), target.get()) == (5, 4)


@pytest.mark.parametrize("name", ["tests.lib.shared_classes:transfer", "tests.nowhere:transfer"])
def test_one_that_is_declared_in_another_version_or_nowhere_does_not_run(name: str) -> None:
    with orca.join() as group:
        source, target = group.share(Counter, "source", 9), group.share(Counter, "target", 0)
        call = group._runtime.sender.invoke_group(
            Code.ATOMIC, (name, bytes(16), 3, source, target, 4), "a test"
        )
        with pytest.raises(orca.ReplicaDivergence, match=f"atomic {name} is not declared here"):
            call.result()
        assert (source.value, target.value) == (9, 0)
