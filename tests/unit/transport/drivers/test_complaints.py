"""Refused connections are logged now and then, and none of them is left out of the count."""

from __future__ import annotations

import logging

from orcalike.transport.drivers.complaints import EVERY, Complaints

WARNING, INFO = logging.WARNING, logging.INFO


def test_those_that_were_not_logged_are_counted_before_the_next_is() -> None:
    lines: list[tuple[int, str]] = []
    complaints = Complaints(lambda level, text: lines.append((level, text)))
    for _ in range(3):
        complaints.say(WARNING, "first", 0)
    complaints.say(INFO, "of another level", 1)
    assert lines == [(WARNING, "first"), (INFO, "of another level")]
    assert complaints.deadline() == EVERY
    complaints.count(EVERY - 1)
    complaints.say(WARNING, "later", EVERY)
    counted = (WARNING, "2 more connections refused since")
    assert lines[2:] == [counted, (WARNING, "later")]
    assert complaints.deadline() is None


def test_they_are_counted_at_the_deadline_if_no_other_comes() -> None:
    lines: list[str] = []
    complaints = Complaints(lambda level, text: lines.append(text))
    for now in (0, 1):
        complaints.say(WARNING, "one", now)
    assert complaints.deadline() == EVERY
    complaints.count(EVERY)
    assert lines == ["one", "1 more connection refused since"]
    complaints.say(WARNING, "the next", EVERY + 1)
    assert lines[2:] == [], "the count was a line of this level, too"
    complaints.count(2 * EVERY)
    assert lines[2:] == ["1 more connection refused since"]
