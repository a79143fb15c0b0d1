"""The time that the host of a virtual machine took from it, by the kernel's account (proc(5)).

Linux charges a part of it to the thread that was about to run: a loop that does nothing can seem to
use 10 ms of processor time at once. What is read here bounds how much of that there was.
"""

from __future__ import annotations

import os

NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_STEAL = 8
"""The field of the first line: cpu, user, nice, system, idle, iowait, irq, softirq, steal."""


class StolenTime:
    """The kernel's account: read before something is timed and, if that was slow, once more."""

    def __init__(self, path: str = "/proc/stat") -> None:
        self._path = path

    def ticks(self) -> int:
        """Taken from all processors since the machine was started; 0 if none ever was."""
        try:
            with open(self._path, "rb", buffering=0) as account:
                fields = account.read(256).split(b"\n", 1)[0].split()
        except OSError:  # the kernel keeps no such account, or shows it to others only
            return 0
        return int(fields[_STEAL]) if len(fields) > _STEAL else 0

    def most_since(self, before: int) -> int:
        """At most so much was taken from all processors, in ns, since there were `before` ticks."""
        ticks = self.ticks()
        if not ticks:
            return 0
        # A part of a tick is not seen; and where a machine moves to another host, the count goes back.
        return (max(ticks - before, 0) + 1) * NS_PER_TICK
