"""What a joiner takes from its group: its detection time, and its order, if it has asked for no other (ADR-23).

Both are the whole group's: leases hold only if all members count alike (H13), and all must agree on one order. They are
among the options that a process asks for as it joins. A group that has others refuses, and says which; then another
incarnation asks, which has those.
"""

from __future__ import annotations

import re

from orcalike.launch_protocol.environment import SECONDS_LEAST, SECONDS_MOST, SHARED_ORDER
from orcalike.runtime.durations import parse_duration
from orcalike.session.options import JoinOptions
from orcalike.transport.stacks import DEFAULT, DEFAULT_LAYERS

DETECTION, STACK = "detection", "stack"
"""The options."""

MEMORY_ALONE = "PACK:XFER:RING:MBRSHIP:COM"
"""The layers of a group that refuses members that cannot share memory."""

_REFUSAL = re.compile(r"config: the group has (\w{1,20})='([\w.:]{1,100})', not .*")


def stack_to_ask_for(options: JoinOptions) -> str:
    """The stack of a process: what it or its launcher names, else one that shares memory if others can join (ADR-24, ADR-27)."""
    if options.stack is not None:
        return options.stack
    can_share = options.launch is None and options.scheme
    return f"{SHARED_ORDER}:{options.scheme}" if can_share else DEFAULT


def as_option(detection: int) -> str:
    """A detection time, ns, as the group's option."""
    return f"{detection / 1e9:.9g}s"


def detection_of_group(refusal: str) -> int | None:
    """The detection time, ns, of the group that refuses a joiner for that alone; None for other reasons."""
    try:
        seconds = parse_duration(_option_of(DETECTION, refusal))
    except ValueError:
        return None
    return round(seconds * 1e9) if SECONDS_LEAST <= seconds <= SECONDS_MOST else None


def stack_of_group(refusal: str, medium: str | None) -> str | None:
    """The layers of the group that refuses a joiner for them alone, if a process takes these over that medium without a word."""
    layers = _option_of(STACK, refusal)
    usual = (DEFAULT_LAYERS, SHARED_ORDER, *([MEMORY_ALONE] if medium == "unix" else []))
    return layers if layers in usual else None


def _option_of(name: str, refusal: str) -> str:
    found = _REFUSAL.fullmatch(refusal)
    return found[2] if found is not None and found[1] == name else ""
