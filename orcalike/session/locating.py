"""Before a process listens: at which host, which names and interfaces say, or in which folder.

A name may not be known yet, as of a pod that starts, and the first member may still have to make the folder of its
socket: it is tried until the time of the join is over.
"""

from __future__ import annotations

import logging
import threading

from orcalike.errors import JoinFailed
from orcalike.session.deadline import Deadline
from orcalike.session.names import Lookup
from orcalike.session.options import JoinOptions
from orcalike.session.waiting import Waiting

TRY_AGAIN = 0.25
"""Seconds before a name or a folder is looked for again."""

WHAT = "find out where to listen"

_log = logging.getLogger("orcalike")


def located(options: JoinOptions, deadline: Deadline) -> JoinOptions:
    """The options with addresses to listen at and to be reached at; it waits in this thread.

    Raises JoinFailed when the time is over; ValueError if what they ask for makes no sense here.
    """
    if options.is_located:
        return options
    locating = _Locating(options)
    try:
        locating.waiting.wait(locating.is_over, deadline.rest(), WHAT)
        return locating.result()
    finally:
        locating.given_up.set()


async def located_on_loop(options: JoinOptions, deadline: Deadline) -> JoinOptions:
    """The same in a coroutine."""
    if options.is_located:
        return options
    locating = _Locating(options)
    try:
        await locating.waiting.wait_on_loop(locating.is_over, deadline.rest(), WHAT)
        return locating.result()
    finally:
        locating.given_up.set()


class _Locating:
    """The lookup of one process that joins."""

    def __init__(self, options: JoinOptions) -> None:
        self.given_up = threading.Event()
        self.waiting = Waiting(lambda waitable, seconds: waitable.wait(seconds), self._say)
        self._options = options
        self._trouble = ""
        self._lookup = Lookup(self._look_up, self.waiting.notify)

    def is_over(self) -> bool:
        """Whether it is known, or cannot be."""
        return self._lookup.is_over

    def result(self) -> JoinOptions:
        """What was found out; raises JoinFailed if that is nothing yet."""
        if not self._lookup.is_over:
            timeout = self._options.timeout
            raise JoinFailed(f"could not join the group within {timeout} s: {self._trouble}")
        return self._lookup.result()

    def _look_up(self) -> JoinOptions:
        while True:
            try:
                return self._options.located()
            except OSError as error:
                self._trouble = error.strerror or str(error)
            if self.given_up.wait(TRY_AGAIN):
                return self._options

    def _say(self, what: str) -> None:
        _log.warning("%s waits: %s", what, self._trouble or "the resolver has not answered")
