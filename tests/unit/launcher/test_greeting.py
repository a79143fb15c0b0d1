"""The first words of launcher and agent: what is no greeting is refused, and no key is shown."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from orcalike.launcher.errors import LaunchError
from orcalike.launcher.greeting import (
    ASSIGNMENT_MAX,
    MAGIC,
    Assignment,
    GreetingError,
    HostReport,
    draw_nonce,
)
from orcalike.launcher.run_plan import RunPlan

PLAN = RunPlan(
    identity="0123abcd",
    seed=5,
    program="prog.py",
    arguments=("-n", "x y"),
    directory=Path("/work"),
    nprocs=4,
    scheme="tcp",
    layers=("a:A",),
    environment={"COLOUR": "red"},
)


def assignment(**changes: Any) -> Assignment:
    """One, with a key that is easily found."""
    values: dict[str, Any] = {
        "version": "1",
        "plan": PLAN,
        "name": "a",
        "node": 1,
        "slots": 2,
        "key": b"\xab" * 32,
        "drawn_from": "",
        "lease": 10.0,
    }
    return Assignment(**values | changes)


def test_an_assignment_comes_as_it_was() -> None:
    nonce, sent = draw_nonce(), assignment(towards=("10.0.0.1",))
    file = io.BytesIO(sent.encode(nonce) + b"frames")
    assert Assignment.read(file.read) == (nonce, sent)
    assert file.read() == b"frames"
    assert "ab" * 32 not in repr(sent)
    assert "xab" not in repr(sent)


@pytest.mark.parametrize("cut", [0, 5, len(MAGIC) + 3, len(MAGIC) + 25, -1])
def test_half_an_assignment_is_none(cut: int) -> None:
    data = assignment().encode(draw_nonce())[:cut]
    with pytest.raises(GreetingError):
        Assignment.read(io.BytesIO(data).read)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"plan": 3}', "[" * 10_000, '{"plan": {}, "key": "xx"}']
)
def test_other_json_is_no_assignment(text: str) -> None:
    data = MAGIC + draw_nonce() + len(text).to_bytes(4, "big") + text.encode()
    with pytest.raises(GreetingError):
        Assignment.read(io.BytesIO(data).read)


def test_an_assignment_of_any_length_is_not_waited_for() -> None:
    data = MAGIC + draw_nonce() + (ASSIGNMENT_MAX + 1).to_bytes(4, "big")
    with pytest.raises(GreetingError, match="bytes"):
        Assignment.read(io.BytesIO(data).read)
    with pytest.raises(LaunchError, match="too long"):
        assignment(name="x" * ASSIGNMENT_MAX).encode(draw_nonce())


def test_reports_of_hosts() -> None:
    report = HostReport(
        version="1",
        python="3.11",
        pid=3,
        cores=2,
        program=None,
        directory=True,
        addresses=("tcp:10.0.0.1:5",),
    )
    assert HostReport.decode(report.encode()) == report
    newer = json.loads(report.encode()) | {"more": 1}
    assert HostReport.decode(json.dumps(newer).encode()) == report
    for bad in (b"", b"{}", b"[]", b"\xff", b"[" * 10_000):
        with pytest.raises(GreetingError):
            HostReport.decode(bad)
