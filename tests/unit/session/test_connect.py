"""`connect`: a group without a block."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike.messages import create_group, join_group, leave_group
from orcalike.objects import Queue
from orcalike.testing import Members
from tests.lib.programs import complaints
from tests.lib.shared_classes import Counter, Gate, pass_gate


def test_a_group_without_a_block() -> None:
    group = orca.connect(timeout="1m")
    counter = group.share(Counter, "counter")
    assert counter.add(2) == 2
    group.close()
    with pytest.raises(orca.GroupClosed):
        counter.add(1)
    group.close()


def test_a_block_that_was_forgotten_is_named() -> None:
    joining: Any = orca.join()
    with pytest.raises(AttributeError, match=r"no 'share': with orca.join\(\) as group"):
        joining.share(Counter, "counter")

    async def join() -> None:
        await joining

    with pytest.raises(TypeError, match=r"is not awaited: with orca\.join"):
        asyncio.run(join())


async def test_an_event_loop_is_not_blocked_by_joining_or_leaving(tmp_path: Path) -> None:
    """The error says what to write instead, and that does it."""
    with pytest.raises(
        orca.BlockingInLoop,
        match=r"^orca.connect\(\) would block .* `async with orca.join\(\).*to_thread\(orca.connect",
    ):
        orca.connect()
    with pytest.raises(orca.BlockingInLoop, match="write `async with orca"), orca.join():
        pytest.fail("it would block")
    group = await asyncio.to_thread(orca.connect, listen=f"unix:{tmp_path}/group")
    async with orca.join(seeds=group.address) as other:
        for each in (group, other):
            with pytest.raises(orca.BlockingInLoop, match=r"await asyncio.to_thread\(group.close"):
                each.close()
        assert (await (await other.share.aio(Counter, "counter")).add.aio(1), group.size) == (1, 2)
        await asyncio.to_thread(other.close)
        await asyncio.to_thread(group.fence)
        assert group.size == 1
    await asyncio.to_thread(group.close)
    assert repr(group) == repr(other) == "<Group 'default': left>"


async def test_an_event_loop_is_not_blocked_by_groups_for_messages(tmp_path: Path) -> None:
    with pytest.raises(orca.BlockingInLoop, match=r"to_thread\(create_group, \.\.\.\)"):
        create_group()
    with pytest.raises(orca.BlockingInLoop, match=r"to_thread\(join_group, \.\.\.\)"):
        join_group(seeds=f"unix:{tmp_path}/group")
    chat = await asyncio.to_thread(create_group)
    with pytest.raises(orca.BlockingInLoop, match=r"to_thread\(leave_group, \.\.\.\)"):
        leave_group(chat)
    await asyncio.to_thread(leave_group, chat)


def test_a_group_that_is_taken_for_a_block_says_what_to_write() -> None:
    group: Any = orca.connect()

    async def enter() -> None:
        async with group:
            pytest.fail("a group is no block")

    left = r"left by group.close\(\): write `with orca\.join\(\)"
    with pytest.raises(TypeError, match=left), group:
        pytest.fail("a group is no block")
    with pytest.raises(TypeError, match=r"in coroutines `async with`"):
        asyncio.run(enter())
    assert group.share(Counter, "counter").add(1) == 1
    group.close()


def test_a_block_is_not_entered_while_it_is() -> None:
    block = orca.join()

    async def enter() -> None:
        async with block:
            pytest.fail("it was entered already")

    for _ in range(2):
        with block as group:
            with pytest.raises(RuntimeError, match=r"entered already: call orca\.join\(\)"), block:
                pytest.fail("it was entered already")
            with pytest.raises(RuntimeError, match="entered already"):
                asyncio.run(enter())
            assert group.share(Counter, "counter").add(1) == 1
        assert repr(group) == "<Group 'default': left>"


def test_members_in_one_process_are_a_block() -> None:
    with Members(2) as members:
        one, other = members.share(Counter, "counter")
        assert one.add(1) == 1
    assert [repr(group) for group in members] == ["<Group 'default': left>"] * 2
    assert other.get() in (0, 1)


def test_a_group_is_not_pickled_or_copied() -> None:
    with orca.join() as group:
        for make in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(
                TypeError, match=r"the group 'default' is this process's, and cannot"
            ):
                make(group)


@pytest.mark.parametrize("listens", [True, False])
def test_a_forked_child_learns_how_it_joins(tmp_path: Path, listens: bool) -> None:
    group = orca.connect(listen=f"unix:{tmp_path}/group" if listens else None)
    counter = group.share(Counter, "counter")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            counter.add(1)
        except orca.GroupClosed as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as says:
        text = says.read()
    assert os.waitpid(child, 0)[1] == 0
    where = f"seeds='{group.address}'" if listens else "seeds=, if the parent has listen="
    assert f"join in the child with {where}, or start the process with group.fork" in text
    group.close()


CALLS: dict[str, Callable[[orca.Group], object]] = {
    "share": lambda group: group.share(Counter, "counter"),
    "find": lambda group: group.find(Counter, "counter"),
    "fence": lambda group: group.fence(),
    "barrier": lambda group: group.barrier(timeout=60),
    "reset": lambda group: group.reset(minimum=1),
    "rejoin": lambda group: group.rejoin(),
    "drain": lambda group: asyncio.run(group.drain()),
    "info": lambda group: group.info(),
    "digest": lambda group: group.digest(),
    "stability": lambda group: group.stability(),
}


def outcomes_of(group: orca.Group) -> dict[str, str]:
    """What each call that needs a member comes to."""
    found = {}
    for name, call in CALLS.items():
        try:
            found[name] = repr(call(group))
        except orca.OrcalikeError as error:
            found[name] = repr(error)
    return found


def test_a_group_that_was_left_shows_what_it_was_and_is_of_no_other_use(tmp_path: Path) -> None:
    first = orca.connect(listen=f"unix:{tmp_path}/group", check="order")
    group = orca.connect(seeds=first.address, check="order")
    assert group.view.primary
    before = group.name, group.me, group.rank, group.members, group.size, group.address
    group.close()
    first.close()
    for left in (group, first):  # of others, or as the last one
        assert not left.view.primary
        assert list(left.views()) == []
        assert outcomes_of(left) == dict.fromkeys(CALLS, repr(LEFT))
    assert before == (group.name, group.me, group.rank, group.members, group.size, group.address)
    assert (group.rank, group.size, first.rank, first.size) == (1, 2, 0, 1)


LEFT = orca.GroupClosed("the group 'default' was left")


def test_a_group_that_was_left_without_an_answer_is_not_primary() -> None:
    group = orca.connect()
    group._session.close()  # as if it had not been let go in time
    assert not group.view.primary
    group.close()


def test_no_call_of_a_group_is_of_use_in_a_forked_child(tmp_path: Path) -> None:
    with orca.join(listen=f"unix:{tmp_path}/group", check="order") as group:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writer, json.dumps(outcomes_of(group)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with open(reader) as says:
            text = says.read()
        assert os.waitpid(child, 0)[1] == 0
        found = json.loads(text)
        assert {name for name in found if "a forked child has no group" in found[name]} == {*CALLS}


def test_ctrl_c_as_connecting_returns_leaves_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program has not got it, and may join it again."""
    registered: list[Callable[[], None]] = []

    def register(close: Callable[[], None]) -> None:
        registered.append(close)
        signal.raise_signal(signal.SIGINT)

    address = f"unix:{tmp_path}/group"
    with monkeypatch.context() as patch:
        patch.setattr("orcalike.session.joining.atexit.register", register)
        with pytest.raises(KeyboardInterrupt):
            orca.connect(listen=address)
    group: Any = registered[0]
    assert repr(group.__self__) == "<Group 'default': left>"
    orca.connect(listen=address).close()


def test_leaving_while_another_thread_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That thread receives for the group; it lets go, and so does the member's own."""
    monkeypatch.setattr("orcalike.group.LEAVE_WITHIN", 1000.0)
    first = orca.connect(listen=f"unix:{tmp_path}/group")
    second = orca.connect(seeds=first.address)
    jobs = second.share(Queue[int], "jobs")

    def wait() -> None:
        with pytest.raises(orca.GroupClosed):
            jobs.get()

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not second._runtime.long_waits.reasons():
        time.sleep(0.01)
    leaving = threading.Thread(target=second.close)
    leaving.start()
    leaving.join(60)
    assert not leaving.is_alive()
    waiting.join(60)
    assert not waiting.is_alive()
    first.close()


def test_it_is_left_when_the_interpreter_ends() -> None:
    program = """
import atexit
import orcalike as orca
from tests.lib.shared_classes import Counter, Gate, pass_gate

atexit.register(lambda: print(group, counter.get()))
group = orca.connect()
counter = group.share(Counter, "counter")
for _ in range(1000):
    counter.add.nowait(1)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True
    )
    assert ended.stdout.startswith("<Group 'default'")
    assert ended.stdout.endswith(" 1000\n")  # all that was under way was waited for
    assert complaints(ended.stderr) == ""


def test_it_is_not_for_operations() -> None:
    @orca.shared
    class Closer:
        @orca.write
        def close(self) -> None:
            group.close()

    with orca.join() as group:
        closer = group.share(Closer, "closer")
        with pytest.raises(orca.NestedWrite, match="close was used inside an operation"):
            closer.close()


@orca.shared
class Stand:
    """Leaving waits until what runs has ended."""

    @orca.write(popup=True)
    def stand(self) -> None:
        pass_gate("stand")  # orca: unchecked


def test_several_threads_that_leave_leave_once(caplog: pytest.LogCaptureFixture) -> None:
    group = orca.connect()
    errors: list[BaseException] = []

    def close() -> None:
        try:
            group.close()
            assert group._closed
        except BaseException as error:  # noqa: BLE001 - looked at below
            errors.append(error)

    with Gate("stand") as gate:
        group.share(Stand, "stand").stand.nowait()
        gate.wait_until_reached()
        threads = [threading.Thread(target=close) for _ in range(3)]
        for thread in threads:
            thread.start()
        gate.open()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
    assert errors == []
    assert caplog.text == ""


def test_a_handler_closes_a_group_that_is_being_left() -> None:
    group = orca.connect()
    handled = threading.Event()

    def handle(number: int, frame: object) -> None:
        if not handled.is_set():
            group.close()
            handled.set()
            gate.open()

    def disturb() -> None:
        gate.wait_until_reached()
        while not handled.wait(0.01):
            os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    disturbing = threading.Thread(target=disturb)
    try:
        with Gate("stand") as gate:
            group.share(Stand, "stand").stand.nowait()
            disturbing.start()
            group.close()
            disturbing.join(30)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert group._closed


async def test_several_tasks_that_leave_leave_once() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        await counter.add.aio(1)
        leaves = asyncio.create_task(group._leave_on_loop(orderly=True))
        await asyncio.sleep(0)
    await leaves
    assert group._closed


def test_it_has_the_parameters_of_join() -> None:
    join, connect = inspect.signature(orca.join), inspect.signature(orca.connect)
    assert connect.parameters == join.parameters
    assert connect.return_annotation == "Group"
