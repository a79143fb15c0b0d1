"""A member of which a thread writes now and then, for good: `now_and_then.py PLACE`."""

from __future__ import annotations

import os
import sys
import threading
import time

from common import STACK, tell
from objects import Log

import orcalike as orca


def write(log: Log) -> None:
    """One write after the other, with time for others between them."""
    for number in range(1 << 30):
        log.add(os.getpid(), number)
        time.sleep(0.005)


with orca.join(at=sys.argv[1], stack=STACK) as group:
    threading.Thread(target=write, args=(group.share(Log, "log"),), daemon=True).start()
    tell(pid=os.getpid())
    while group.info().blocked is None:
        time.sleep(0.01)
    time.sleep(0.5)  # until all that follows from it is done
    tell(blocked=True)
    time.sleep(60)
