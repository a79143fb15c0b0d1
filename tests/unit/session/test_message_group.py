"""Groups of messages: leaving that a signal's handler interrupts."""

from __future__ import annotations

import pytest

from orcalike.errors import GroupClosed
from orcalike.messages import MessageGroup, create_group, leave_group, receive_from_group
from orcalike.session.session import Session


def receive_all(group: MessageGroup) -> None:
    """What has come before, and then the end."""
    while True:
        receive_from_group(group, timeout=30)


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
