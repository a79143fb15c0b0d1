"""The members of a run that are no ranks: processes that a rank has started, each watched until it ends (H13).

Each of them says on the rank's line which member it is to be, before it asks to be let in, and the kernel says which process
that comes from. So its death is certain to others of its host also if they were not connected to it, or by TCP alone, and if
the rank that has started it ended first.
"""

from __future__ import annotations

import os
import resource
import select
import selectors
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from orcalike.launch_protocol.control_lines import parse_of_started

#: Of one process the last members that it was or asked to be: all but the last were refused, or expelled.
INCARNATIONS_MAX = 64
#: Descriptors that are left for the processes of the run itself.
SPARE = 64


@dataclass(slots=True)
class _Watched:
    """A process, and the members that end with it."""

    pidfd: int
    incarnations: deque[int] = field(default_factory=lambda: deque(maxlen=INCARNATIONS_MAX))


class StartedMembers:
    """Those that one rank has started, and what these have; `ended(incarnation)` is called for each member that has ended."""

    def __init__(self, selector: selectors.BaseSelector, ended: Callable[[int], None]) -> None:
        self._selector, self._ended = selector, ended
        self._watched: dict[int, _Watched] = {}
        """By process number."""

    def take(self, pid: int, line: str) -> None:
        """Take a line of one of these processes; one that does not say which member it is, is let pass."""
        if (report := parse_of_started(line)) is None:
            return
        watched = self._watched.get(pid)
        if watched is not None and _has_ended(watched.pidfd):
            self._take_end(pid)  # the number may be another process's by now
            watched = None
        if watched is None:
            try:
                watched = self._watch(pid)
            except ProcessLookupError:  # it has sent that, so it was there
                self._ended(report.incarnation)
                return
        if watched is not None and report.incarnation not in watched.incarnations:
            watched.incarnations.append(report.incarnation)

    def _watch(self, pid: int) -> _Watched | None:
        """Watch a process; None if there is no room for it: its death is suspected, and never certain.

        Raises ProcessLookupError if it has ended.
        """
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except OSError:
            return None
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if pidfd >= limit - SPARE:
            os.close(pidfd)
            return None
        watched = self._watched[pid] = _Watched(pidfd)
        self._selector.register(pidfd, selectors.EVENT_READ, partial(self._take_end, pid))
        return watched

    def _take_end(self, pid: int) -> None:
        watched = self._watched.pop(pid)
        self._selector.unregister(watched.pidfd)
        os.close(watched.pidfd)
        for incarnation in watched.incarnations:
            self._ended(incarnation)


def _has_ended(pidfd: int) -> bool:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(0))
