"""A member that meets the others in a directory, and writes until the test says "stop": `contained.py NAME`."""

from __future__ import annotations

import os
import sys

from common import MEETINGS, STACK, called, tell
from objects import Log

import orcalike as orca

try:
    joining = orca.join(
        at=f"unix:{MEETINGS}/at", size=int(os.environ.get("SIZE", "3")), stack=STACK, timeout=60
    )
    with joining as group:
        log = group.share(Log, "log")
        number = 1
        log.add(ord(sys.argv[1]), 0)
        size = group.size
        tell(process=os.getpid(), size=size)
        while not called("stop"):
            log.add(ord(sys.argv[1]), number)
            number += 1
            if group.size != size:
                size = group.size
                tell(size=size)
        group.barrier()
        tell(log=log.entries)
except orca.OrcalikeError as error:
    tell(error=type(error).__name__, text=str(error))
