"""The public names of orcalike and their signatures are those that are written down."""

from __future__ import annotations

import pytest

from orcalike import messages
from tests.lib.public_names import STORED, public_names


def test_public_names_and_signatures_are_as_written_down() -> None:
    """What changes here on purpose: `python -m tests.lib.public_names`, and CHANGELOG.md says it."""
    assert public_names() == STORED.read_text(encoding="utf-8").splitlines()


def test_a_signature_that_changes_is_found() -> None:
    before = public_names()

    def send_to_group(group: messages.MessageGroup, data: bytes) -> None:
        """Without a time limit."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "send_to_group", send_to_group)
        changed = set(before) ^ set(public_names())
    assert len(changed) == 2
    assert all(line.startswith("orcalike.messages.send_to_group(") for line in changed)
