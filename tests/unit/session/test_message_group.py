"""Groups of messages: what is a message, and leaving that a signal's handler interrupts."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike.errors import ConfigMismatch, GroupClosed, NotEnoughMembers
from orcalike.messages import (
    Data,
    MessageGroup,
    create_group,
    get_info_group,
    join_group,
    leave_group,
    receive_from_group,
    reset_group,
    send_to_group,
)
from orcalike.runtime import waits
from orcalike.session import message_inbox
from orcalike.session.session import Session
from orcalike.session.switch_interval import switching
from tests.lib.time_limits import LIMIT


def receive_all(group: MessageGroup) -> None:
    """What has come before, and then the end."""
    while True:
        receive_from_group(group, timeout=30)


def test_a_group_is_no_block() -> None:
    group: Any = create_group()
    with pytest.raises(TypeError, match=r"leave it by `leave_group\(group\)`"), group:
        pytest.fail("a group is no block")
    leave_group(group)


@pytest.mark.parametrize("layer", ["ORDER", "TOTAL"])
def test_a_forked_child_has_no_group(tmp_path: Path, layer: str) -> None:
    """What it sent would go by its parent's sockets, or into memory that it has not."""
    calls: dict[str, Callable[[], object]] = {
        "send": lambda: send_to_group(group, b"the child's"),
        "receive": lambda: receive_from_group(group, timeout=30),
        "info": lambda: get_info_group(group),
        "reset": lambda: reset_group(group, 1),
        "leave": lambda: leave_group(group),
    }
    address, stack = f"unix:{tmp_path}/group", f"PACK:XFER:{layer}:MBRSHIP:COM:unix"
    group = create_group(listen=address, stack=stack)
    other = join_group(seeds=address, stack=stack, timeout=60)
    send_to_group(group, b"before")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for name, call in calls.items():
                with contextlib.suppress(GroupClosed):
                    call()
                os.write(writer, name.encode() + b" ")
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as says:
        assert says.read().split() == list(calls)
    assert os.waitpid(child, 0)[1] == 0
    send_to_group(other, b"after")
    leave_group(other)
    leave_group(group)
    received: list[object] = []
    with contextlib.suppress(GroupClosed):
        while True:
            received.append(receive_from_group(group, timeout=30))
    assert [each.data for each in received if isinstance(each, Data)] == [b"before", b"after"]


def test_a_message_is_like_bytes() -> None:
    group = create_group()
    try:
        for wrong in (3, [1, 2], "text", None):
            with pytest.raises(TypeError, match="bytes-like"):
                send_to_group(group, wrong)  # type: ignore[arg-type]
        for right in (
            b"12",
            bytearray(b"12"),
            memoryview(b"1020")[::3][:0],
            memoryview(b"1x2")[::2],
        ):
            send_to_group(group, right)
        received = [receive_from_group(group, timeout=30) for _ in range(4)]
        assert [each.data for each in received if isinstance(each, Data)] == [
            b"12",
            b"12",
            b"",
            b"12",
        ]
    finally:
        leave_group(group)


@pytest.mark.parametrize("packs", ["PACK:", ""])
def test_what_was_ordered_makes_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, packs: str
) -> None:
    monkeypatch.setattr(message_inbox, "UNDER_WAY_MAX", 1000)
    group = create_group(
        listen=f"unix:{tmp_path}/group", stack=f"{packs}XFER:TOTAL:MBRSHIP:COM:unix"
    )
    try:
        for number in range(10):
            send_to_group(group, bytes([number]) * 400, timeout=LIMIT)
            assert receive_from_group(group, timeout=LIMIT).data[:1] == bytes([number])  # type: ignore[union-attr]
    finally:
        leave_group(group)


def test_a_message_for_a_second_member_is_reported_until_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else the launcher might end a run as blocked for good (74), and a person look for a hang in vain."""
    reported: list[int] = []
    during: list[list[str]] = []

    def lacks_members(self: Session, needed: int) -> None:
        reported.append(needed)
        during.append([wait.operation for wait in waits.waiting.values()])

    monkeypatch.setattr(Session, "lacks_members", lacks_members)
    group = create_group(listen=f"unix:{tmp_path}/group", resilience=1)
    try:
        with pytest.raises(NotEnoughMembers, match="takes 2 members"):
            send_to_group(group, b"for two", timeout=0.01)
        assert set(reported[:-1]) == {2}
        assert reported[-1] == 0, "none waits any more"
        assert "send_to_group" in during[0]
        assert threading.get_ident() not in waits.waiting
    finally:
        leave_group(group)


def test_a_group_whose_leaving_was_interrupted_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    group = create_group()
    leave = Session.leave

    def interrupted(self: Session, within: float) -> None:
        leave(self, within)
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "leave", interrupted)
    with pytest.raises(KeyboardInterrupt):
        leave_group(group)
    with pytest.raises(GroupClosed, match="was left"):
        receive_all(group)


def test_several_threads_that_leave_leave_once(tmp_path: Path) -> None:
    users = switching._users
    group = create_group(listen=f"unix:{tmp_path}/group")
    threads = [threading.Thread(target=leave_group, args=(group,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert switching._users == users
    leave_group(group)


def test_a_group_of_objects_is_none_of_messages(tmp_path: Path) -> None:
    """What is sent in the one means nothing in the other."""
    with (
        orca.join("one", listen=f"unix:{tmp_path}/one") as group,
        pytest.raises(ConfigMismatch, match="the group has kind='objects', not 'messages'"),
    ):
        join_group("one", seeds=group.address, timeout=30)


def test_a_group_of_messages_is_none_of_objects(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/one"
    group = create_group("one", listen=address)
    try:
        with (
            pytest.raises(ConfigMismatch, match="the group has kind='messages', not 'objects'"),
            orca.join("one", seeds=address, timeout=30),
        ):
            pass
    finally:
        leave_group(group)
