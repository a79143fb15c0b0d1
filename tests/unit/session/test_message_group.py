"""Groups of messages: what is a message, and leaving that a signal's handler interrupts."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike.errors import ConfigMismatch, GroupClosed
from orcalike.messages import (
    Data,
    MessageGroup,
    create_group,
    join_group,
    leave_group,
    receive_from_group,
    send_to_group,
)
from orcalike.session.session import Session
from orcalike.session.switch_interval import switching


def receive_all(group: MessageGroup) -> None:
    """What has come before, and then the end."""
    while True:
        receive_from_group(group, timeout=30)


def test_a_group_is_no_block() -> None:
    group: Any = create_group()
    with pytest.raises(TypeError, match=r"leave it by `leave_group\(group\)`"), group:
        pytest.fail("a group is no block")
    leave_group(group)


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
