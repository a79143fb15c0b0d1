"""A member that adds to a counter until the test calls "stop", and rejoins when it is expelled.

`cut_off.py make ADDRESS` or `cut_off.py join ADDRESS...`. It says what happens to it: that it is in, each
view, that it is expelled, that it is in again, how much it has added in all, and how much of that is there.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time

from common import KEY, called, tell
from objects import Log

import orcalike as orca

logging.basicConfig(format="%(message)s", level=logging.ERROR)

how, *addresses = sys.argv[1:]
joining = (
    orca.join(listen=addresses[0], key=KEY)
    if how == "make"
    else orca.join(seeds=addresses, timeout=100, key=KEY)
)


def show_views(group: orca.Group) -> None:
    for view in group.views():
        tell(what="view", members=[member.rank for member in view.replicas], primary=view.primary)


with joining as group:
    me = os.getpid()
    detection = group._session.stack.config.detection
    tell(what="in", address=group.address, rank=group.rank, detection=detection / 1e9)
    threading.Thread(target=show_views, args=(group,), daemon=True).start()
    log = group.share(Log, "log")
    number = added = 0
    while not called("stop"):
        number += 1
        try:
            log.add(me, number)
            added += 1
        except orca.Expelled:  # whether this one was ordered is not known here
            tell(what="expelled")
            group.rejoin(timeout=100)
            tell(what="in again")
        time.sleep(0.002)  # some hundred a second are enough
    group.fence()
    tell(what="end", count=len(log.numbers(me)), added=added, disorder=log.disorder())
