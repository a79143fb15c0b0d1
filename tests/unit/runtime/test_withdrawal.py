"""A withdrawal reaches its call at each replica at one place in the order, whatever thread tries it there."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import orcalike as orca
from orcalike.runtime.replica import Replica, replica_of
from orcalike.runtime.task import go_on
from orcalike.session.group_calls import Share
from tests.instructions.workload import Network
from tests.lib.shared_classes import Gate, pass_gate

held_up: threading.Thread | None = None
"""The thread that stops in guards and operations."""


def stop(gate: str) -> None:
    """Where the thread that is held up stops, and no other does."""
    if threading.current_thread() is held_up:
        pass_gate(gate)


@orca.shared
class Box:
    """A call waits until there is something in it."""

    def __init__(self) -> None:
        self.there = 0
        self.got: list[str] = []

    @orca.write
    def put(self) -> None:
        stop("put")  # orca: unchecked
        self.there += 1

    @orca.write
    def get(self, name: str) -> str:
        self.there -= 1
        self.got.append(name)
        return name

    @get.when
    def _(self, name: str) -> bool:
        there = self.there
        stop("guard")  # orca: unchecked
        return there > 0

    @orca.write(popup=True)
    def stand(self) -> None:
        pass_gate("stand")  # orca: unchecked


@orca.atomic
def get_from_both(one: Box, other: Box, name: str) -> str:
    """Take from two."""
    one.get(name)
    return other.get(name)


@get_from_both.when
def _(one: Box, other: Box, name: str) -> bool:
    there = min(one.there, other.there)
    stop("guard")  # orca: unchecked
    return there > 0


class Scene:
    """Three members, and a thread that tries the calls of one of them."""

    def __init__(self) -> None:
        self.network = Network()

    def share(self, name: str) -> list[Box]:
        """Each member's object of that name."""
        shares = [Share(node.runtime).nowait(Box, name) for node in self.network.nodes]
        self.network.move()
        return [share.result() for share in shares]

    @contextmanager
    def in_thread(self, replica: Replica) -> Iterator[None]:
        """Meanwhile another thread runs what has queued for an object."""
        global held_up
        held_up = threading.Thread(target=go_on, args=(replica,))
        held_up.start()
        try:
            yield
        finally:
            held_up.join(30)
            held_up = None


@pytest.fixture
def scene(order: str) -> Scene:
    """Over the order of the test."""
    return Scene()


def replica_for(box: Box) -> Replica:
    """What its member knows of it."""
    replica = replica_of(box)
    assert replica is not None
    return replica


@pytest.mark.parametrize("caller", [0, 2])
@pytest.mark.parametrize("atomic", [False, True])
def test_a_call_whose_guard_is_tried_in_another_thread(
    scene: Scene, caller: int, *, atomic: bool
) -> None:
    """It was in no list there, so it stayed at that replica alone, and ran later."""
    boxes, others = scene.share("box"), scene.share("other")
    there = replica_for(boxes[2])
    there.hold(0)
    mine, other = boxes[caller], others[caller]
    call = get_from_both.nowait(mine, other, "it") if atomic else mine.get.nowait("it")
    scene.network.move()
    with Gate("guard") as gate, scene.in_thread(there):
        gate.wait_until_reached()
        assert call.cancel()
        scene.network.move()
        assert call.done() == (caller != 2)
        gate.open()
    with pytest.raises(orca.InvocationCancelled, match="did not run and never will"):
        call.result()
    for box in (boxes[0], others[0]):
        box.put.nowait()
        scene.network.move()
    assert [box.got for box in (*boxes, *others)] == [[]] * 6
    assert [box.there for box in (*boxes, *others)] == [1] * 6


@pytest.mark.parametrize("caller", [0, 2])
def test_what_made_its_guard_true_came_first(scene: Scene, caller: int) -> None:
    """The call runs at all replicas, though the one that is late knows of its withdrawal before."""
    boxes = scene.share("box")
    there = replica_for(boxes[2])
    there.hold(0)
    call = boxes[caller].get.nowait("it")
    scene.network.move()
    with Gate("guard") as gate, scene.in_thread(there):
        gate.wait_until_reached()
        boxes[caller].put.nowait()
        assert call.cancel()
        scene.network.move()
        assert call.done() == (caller != 2)
        gate.open()
    assert call.result() == "it"
    assert [box.got for box in boxes] == [["it"]] * 3


def test_an_object_that_has_nothing_to_do_with_it(scene: Scene) -> None:
    """The withdrawal gets through another busy object before a write that comes first has run."""
    boxes, others = scene.share("box"), scene.share("other")
    there, aside = replica_for(boxes[2]), replica_for(others[2])
    there.hold(0)
    aside.hold(0)
    call = boxes[2].get.nowait("it")
    scene.network.move()
    boxes[0].put.nowait()
    scene.network.move()
    with Gate("guard") as guard, Gate("put") as put, scene.in_thread(there):
        guard.wait_until_reached()
        assert call.cancel()
        scene.network.move()
        guard.open()
        put.wait_until_reached()
        go_on(aside)
        put.open()
    assert call.result() == "it"
    assert [box.got for box in boxes] == [["it"]] * 3


async def test_a_withdrawal_that_nothing_waits_for_any_more_is_no_failure(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    withdrawn = asyncio.Event()
    async with orca.join() as group:
        box = await group.share.aio(Box, "box")
        manager = group._runtime.manager
        send = manager.send_withdrawal

        def note(ticket: int) -> None:
            send(ticket)
            withdrawn.set()

        monkeypatch.setattr(manager, "send_withdrawal", note)
        with Gate("stand") as gate:
            stands = box.stand.nowait()
            gets = asyncio.create_task(box.get.options(timeout=0.001).aio("it"))
            await withdrawn.wait()
            gets.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gets
            gate.open()
            await stands
        await group.fence.aio()
        del gets
        gc.collect()
        assert box.got == []
    assert "was not asked for" not in caplog.text
