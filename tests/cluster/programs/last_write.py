"""A member that holds a lock, and sends itself a signal between its write and what wakes others for it.

`last_write.py ADDRESS SIGNAL`. One that is stopped finds that it was expelled when it goes on, joins again, and waits.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from common import called, tell, wait_for

import orcalike as orca
from orcalike.objects import Lock
from orcalike.session import options

sys.path.append(str(Path(__file__).parents[3]))

from tests.lib.fresh_members import LONG, Box

options.FRESHNESS_MAX = 10**6


def strike(step: str) -> None:
    """At the failpoint behind the packet's place in the order."""
    if step == "W3":
        os.kill(os.getpid(), int(sys.argv[2]))


def is_out() -> bool:
    """Whether this member knows that the others have gone on without it."""
    try:
        group.fence()
    except orca.Expelled:
        return True
    return False


with orca.join(seeds=sys.argv[1], freshness=LONG) as group:
    box = group.share(Box, "box")
    group.share(Lock, "lock").acquire()
    tell(holds=True)
    wait_for(lambda: called("write"), "the test lets it write")
    stack = group._session.stack
    stack.on_mark = strike
    try:
        box.put(7)
    except orca.Expelled:
        pass
    finally:
        stack.on_mark = None
    wait_for(is_out, "it is out")
    group.rejoin()
    tell(back=True)
    tell(taken=box.take())
