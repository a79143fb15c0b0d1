"""What an operation does outside of its object, so that the test can see it: one file for each entry."""

from __future__ import annotations

import os
import sys

from common import MEETINGS, called, wait_for


def make_entry(number: int) -> None:
    """Make an entry; a process that is started as "slow" makes none before "go"."""
    if sys.argv[1] == "slow":
        wait_for(lambda: called("go"), "go")
    (MEETINGS / f"entry {number} of {os.getpid()}").touch()


def made(number: int) -> int:
    """How many members have made an entry."""
    return len(list(MEETINGS.glob(f"entry {number} of *")))
