"""The detection time is the whole group's: leases hold only if all members count alike (H13).

It is among the options that a process asks for as it joins; one that did not set it takes the group's.
"""

from __future__ import annotations

import re

from orcalike.launch_protocol.environment import SECONDS_LEAST, SECONDS_MOST
from orcalike.runtime.durations import parse_duration

OPTION = "detection"

_REFUSAL = re.compile(rf"config: the group has {OPTION}='([0-9.]{{1,20}}s)', not .*")


def as_option(detection: int) -> str:
    """A detection time, ns, as the group's option."""
    return f"{detection / 1e9:.9g}s"


def of_group(refusal: str) -> int | None:
    """The detection time, ns, of the group that refuses a joiner for that alone; None for other reasons."""
    found = _REFUSAL.fullmatch(refusal)
    if found is None:
        return None
    try:
        seconds = parse_duration(found[1])
    except ValueError:
        return None
    return round(seconds * 1e9) if SECONDS_LEAST <= seconds <= SECONDS_MOST else None
