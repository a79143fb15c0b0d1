"""What the launcher tells the rank that orders: which ranks have ended, by lines on a pipe.

With a witness that is the witness's business; with `--sequencer rank` it is rank 0's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

_ended: set[int] = set()
_listeners: list[Callable[[set[int]], None]] = []
_started = False


def listen(listener: Callable[[set[int]], None]) -> None:
    """Call `listener` with the ranks that have ended, each time that there is another one."""
    global _started
    _listeners.append(listener)
    descriptor = os.environ.get("ORCALIKE_CONTROL_FD")
    if descriptor and not _started:
        _started = True
        os.set_inheritable(int(descriptor), False)
        threading.Thread(
            target=_read, args=(int(descriptor),), name="orcalike control", daemon=True
        ).start()
    if _ended:
        listener(set(_ended))


def forget(listener: Callable[[set[int]], None]) -> None:
    """The end of `listen`."""
    if listener in _listeners:
        _listeners.remove(listener)


def _read(descriptor: int) -> None:
    with os.fdopen(descriptor) as lines:
        for line in lines:
            word, _, rank = line.partition(" ")
            if word == "ended" and rank.strip().isdigit():
                _ended.add(int(rank))
                for listener in _listeners.copy():
                    listener(set(_ended))
