"""A member that writes until the test calls "stop", or its own name, and says which order its group has, as that changes.

`going_over.py NAME make ADDRESS` or `going_over.py NAME join ADDRESS...`. One whose name is "short" lacks the descriptors that it
needs to map memory, until the test calls "enough".
"""

from __future__ import annotations

import errno
import os
import sys

from common import KEY, called, tell
from objects import Log

import orcalike as orca
from orcalike.transport.drivers import descriptors

name, how, *addresses = sys.argv[1:]
open_in = descriptors.open_in


def open_if_enough(files: int, number: int, flags: int) -> int:
    """As a process opens what others offer that has no descriptors left."""
    if not called("enough"):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return open_in(files, number, flags)


if name == "short":
    descriptors.open_in = open_if_enough
with (
    orca.join(listen=addresses[0], key=KEY)
    if how == "make"
    else orca.join(seeds=addresses, timeout=60, key=KEY)
) as group:
    me = os.getpid()
    stack = group._session.stack
    log = group.share(Log, "log")
    number, seen = 0, None
    while not (called("stop") or called(name)):
        number += 1
        log.add(me, number)
        assert log.last(me) == number
        now = group.size, "memory" if stack.focus("RING") is not None else "sequencer"
        if now != seen:
            seen = now
            tell(order=now)
    if called(name):
        tell(pid=me, written=number)
    else:
        group.barrier()
        tell(
            pid=me,
            written=number,
            fingerprint=log.fingerprint(),
            disorder=log.disorder(),
            newest={str(each): log.last(each) for each in log.writers()},
        )
