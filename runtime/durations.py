"""Durations, as programs and people write them: `2.5`, "2s", "500ms", "5 minutes"."""

from __future__ import annotations

import math
import re

Duration = float | str
"""Seconds as a number, or a text with a unit."""

_DURATION = re.compile(r"\s*(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-z]*)\s*")
_SECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}


def parse_duration(text: str) -> float:
    """Seconds from "10s", "500ms", "5 minutes" or "2.5"; raises ValueError for anything else."""
    match = _DURATION.fullmatch(text.lower())
    if match is None or match["unit"] not in _SECONDS:
        raise ValueError(f"{text!r} is not a duration such as 500ms, 10s, 10m or 2h")
    return float(match["number"]) * _SECONDS[match["unit"]]


def in_seconds(limit: Duration | None) -> float | None:
    """The seconds of a limit for a class that is named after one of Python's: also below 0."""
    if limit is None:
        return None
    if isinstance(limit, str):
        return parse_duration(limit)
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise TypeError(f'a time limit is in seconds, or a text such as "500ms", not {limit!r}')
    if math.isnan(limit):
        raise ValueError(f"a time limit of {limit} seconds: a number, or None for none")
    return limit


def seconds_of(limit: Duration | None) -> float | None:
    """A time limit in seconds; None for none.

    Raises TypeError for what is neither a number nor a text, ValueError for what is no duration.
    """
    seconds = in_seconds(limit)
    if seconds is not None and not seconds >= 0:
        raise ValueError(f"a time limit of {limit} seconds: from 0 on, or None for none")
    return seconds
