"""Only what is registered runs (D18): an invocation of anything else is named, and harms no member."""

from __future__ import annotations

import logging

import pytest

import orcalike as orca
from tests.lib.shared_classes import Counter

GROUP = 0


@pytest.mark.parametrize(
    ("number", "code", "body", "what"),
    [
        (99, 0, b"", "there is no object 99"),
        (1, 2 * 1000, b"", "'hits' has no operation 1000"),
        (GROUP, 2 * 77, b"", "the group has no operation 77"),
        (GROUP, 2, b"\xc1", "operation 1 of the group"),
    ],
    ids=["object", "operation", "group", "arguments"],
)
def test_what_is_unknown_is_dropped(
    number: int, code: int, body: bytes, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    with orca.join() as group:
        counter = group.share(Counter, "hits")
        with caplog.at_level(logging.ERROR, "orcalike"):
            group._runtime.sender.commit(number, code, body)
            group.fence()
        assert what in caplog.text
        assert "rank 0" in caplog.text
        before = counter.get()
        counter.add(1)
        assert counter.get() == before + 1
