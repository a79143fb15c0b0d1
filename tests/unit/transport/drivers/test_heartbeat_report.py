"""What the heartbeats get of a stack: its peers when they are new ones, and which members it answers without any."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from orcalike.transport.drivers.heartbeat_report import HeartbeatReport
from orcalike.transport.view import Member

ME, OTHER = Member("tcp:10.0.0.1:1", 7, 0), Member("tcp:10.0.0.2:1", 8, 1)


class Heartbeat:
    """It keeps what it gets."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, tuple[Member, ...]]] = []

    def beat(self, me: int, group: str, each: int, peers: Any, *rest: object) -> dict[int, int]:
        self.calls.append(("beat", me, tuple(peers)))
        return {}

    def answer(self, me: int, group: str) -> None:
        self.calls.append(("answer", me, ()))


class Stack:
    """In place of one in a view, or in none."""

    me, alarm, lease, unleased = ME, None, 1, ()
    config = SimpleNamespace(group="g", detection=5)

    def __init__(self, version: int, beats: list[Member], *, answers: bool) -> None:
        self.beats_version, self.beats, self.answers = version, beats, answers


@pytest.mark.parametrize(
    ("version", "beats", "answers", "calls"),
    [
        (0, [], False, [("answer", 7, ())]),  # in no view yet
        (1, [OTHER], True, [("beat", 7, (OTHER,))]),
        (1, [OTHER], False, [("beat", 7, (OTHER,))]),
        (1, [], True, [("beat", 7, ()), ("answer", 7, ())]),
        (1, [], False, [("beat", 7, ())]),
    ],
    ids=["outside", "peers", "no-answers", "answers", "neither"],
)
def test_members_that_send_it_beats_are_answered(
    version: int,
    beats: list[Member],
    answers: bool,
    calls: list[tuple[str, int, tuple[Member, ...]]],
) -> None:
    """Also by one that has no peers, if others may have it for theirs; what is known is given once."""
    heartbeat = Heartbeat()
    report = HeartbeatReport(cast(Any, heartbeat))
    stack = cast(Any, Stack(version, beats, answers=answers))
    for _ in range(2):
        report.give_peers(stack, (), receives_deaths=False, now=0)
    assert heartbeat.calls == calls
    report.clear()
    report.give_peers(stack, (), receives_deaths=False, now=0)
    assert heartbeat.calls == calls * 2
