"""A group that was left while the thread that receives was in the middle of something: nothing more happens to objects."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

import orcalike as orca
from orcalike.session.group_calls import Share
from tests.instructions.workload import Network, Quiet


@orca.shared
class Roll:
    """Notes members that leave."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @orca.write
    def note(self, line: str) -> None:
        self.lines.append(line)

    @orca.write(popup=True)
    def note_in_a_thread(self, line: str) -> None:
        self.lines.append(line)

    def member_left(self, member: orca.Member) -> None:
        self.lines.append("left")

    @orca.read
    def all(self) -> list[str]:
        return list(self.lines)


meanwhile: list[Callable[[], object]] = []
"""What happens while the next operation of a `Slow` runs."""


@orca.shared
class Slow:
    """Its operation takes long."""

    def __init__(self) -> None:
        self.count = 0

    @orca.write
    def add(self) -> int:
        self.count += 1
        while meanwhile:  # orca: unchecked
            meanwhile.pop()()  # orca: unchecked
        self.count += 1
        return self.count

    @orca.read
    def value(self) -> int:
        return self.count


class Leaving(Quiet):
    """The events of a member that leaves."""

    def exited(self, why: str) -> None:
        assert why == "left"


@pytest.mark.usefixtures("order")
@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "forgotten"])
def test_what_comes_after_the_group_was_left_touches_no_object(
    is_kept: bool, caplog: pytest.LogCaptureFixture
) -> None:
    network = Network()
    made = [Share(node.runtime).nowait(Roll, "roll") for node in network.nodes]
    network.move()
    rolls = [call.result() for call in made]
    kept = rolls[0] if is_kept else None
    rolls[0] = rolls[1]
    del made
    first, leaver = network.nodes[0], network.nodes[2]
    leaver.runtime.events = Leaving()
    rolls[1].note.nowait("before")
    network.move()
    closed = orca.GroupClosed("the group was left")
    with caplog.at_level(logging.INFO):
        first.runtime.fail_all(closed)
        first.runtime.let_go(closed)
        rolls[1].note.nowait("after")
        rolls[1].note_in_a_thread.nowait("after, too")
        network.move()
        leaver.stack.leave(network.now)
        network.move()
    assert not [record for record in caplog.records if record.name == "orcalike"]
    assert "after" in rolls[1].all()
    assert "left" in rolls[1].all()
    if kept is not None:
        assert kept.all() == ["before"]


@pytest.mark.usefixtures("order")
def test_an_operation_that_has_not_ended_by_then_ends_as_ever() -> None:
    network = Network()
    made = [Share(node.runtime).nowait(Slow, "slow") for node in network.nodes]
    network.move()
    slow, leaver = made[2].result(), network.nodes[2].runtime
    closed = orca.GroupClosed("the group was left")
    made[1].result().add.nowait()
    network.nodes[0].runtime.fail_all(closed)
    network.nodes[1].runtime.fail_all(closed)
    for runtime in (network.nodes[0].runtime, network.nodes[1].runtime):
        runtime.let_go(closed)

    def leave() -> None:
        leaver.fail_all(closed)
        leaver.let_go(closed)

    meanwhile.append(leave)
    network.move()
    assert meanwhile == []
    assert slow.value() == 2
    with pytest.raises(orca.GroupClosed):
        slow.add()


@orca.shared
class Door:
    """One that is waited for."""

    def __init__(self) -> None:
        self.is_open = False

    @orca.write
    def open(self) -> None:
        self.is_open = True

    @orca.read
    def wait(self, steps: int = 0) -> bool:
        return self.is_open

    @wait.when
    def _(self, steps: int = 0) -> bool:
        return self.is_open


async def test_a_read_whose_guard_does_not_hold_raises_after_the_group_was_left() -> None:
    async with orca.join() as group:
        shut, opened = await group.share.aio(Door, "shut"), await group.share.aio(Door, "opened")
        await opened.open.aio()
    with pytest.raises(orca.GroupClosed, match="was left"):
        shut.wait()
    with pytest.raises(orca.GroupClosed, match="was left"):
        shut.wait.options(timeout=100.0)()
    with pytest.raises(orca.GroupClosed, match="was left"):
        shut.wait.nowait().result()
    with pytest.raises(orca.GroupClosed, match="was left"):
        await shut.wait.aio()
    with pytest.raises(TypeError, match="wait"):
        shut.wait(stairs=1)  # type: ignore[call-arg]
    assert (opened.wait(), opened.wait.nowait(steps=2).result()) == (True, True)
