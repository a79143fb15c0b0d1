"""The handlers of signals are the program's own again when it is in no group any more."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.messages import create_group, leave_group
from orcalike.session import deferred_signals
from orcalike.session.deferred_signals import handlers
from orcalike.transport.drivers.deferral import Deferring


def waits() -> bool:
    """Whether the handler of Ctrl-C is one that waits while the core runs."""
    return isinstance(deferred_signals._get(signal.SIGINT), Deferring)


def in_a_thread(address: str) -> None:
    group = orca.connect(listen=address)
    assert waits()
    group.close()


def on_a_loop(address: str) -> None:
    async def join() -> None:
        async with orca.join(listen=address):
            assert waits()

    asyncio.run(join())


def for_messages(address: str) -> None:
    group = create_group(listen=address)
    assert waits()
    leave_group(group)


def that_is_not_joined(address: str) -> None:
    with pytest.raises(orca.JoinFailed):
        orca.connect(seeds=address, timeout=0.01)


def that_can_keep_no_history(address: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORCALIKE_HISTORY", "/dev/null/below")
        with pytest.raises(OSError, match="/dev/null"):
            orca.connect(listen=address)
    with socket.socket(socket.AF_UNIX) as found, pytest.raises(FileNotFoundError):
        found.connect(address.removeprefix("unix:"))


@pytest.mark.parametrize(
    "way", [in_a_thread, on_a_loop, for_messages, that_is_not_joined, that_can_keep_no_history]
)
def test_each_group_lets_them_go(tmp_path: Path, way: Callable[[str], None]) -> None:
    users, before = handlers._users, deferred_signals._get(signal.SIGINT)
    shown = signal.getsignal(signal.SIGINT)
    way(f"unix:{tmp_path}/group")
    assert handlers._users == users
    assert deferred_signals._get(signal.SIGINT) is before
    assert signal.getsignal(signal.SIGINT) is shown
    assert waits() == (users > 0)
