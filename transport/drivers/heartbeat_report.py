"""What the stacks and the heartbeats of a process report to each other.

The heartbeats learn which members the stacks beat to, and whether that is a lease; each stack, which members
were heard, and which live.
"""

from __future__ import annotations

from collections.abc import Collection

from orcalike.transport.drivers.heartbeat import Heartbeat
from orcalike.transport.drivers.peer_processes import PeerProcesses
from orcalike.transport.membership.lease import window_of
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member

BEATS = 5
"""In a detection time."""


class HeartbeatReport:
    """Between `heartbeat` and the stacks, each of which is told about when its version of the members is new."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        self._heartbeat = heartbeat
        self._told: dict[Stack, int] = {}

    def tell(self, stack: Stack, severed: Collection[str], hears_deaths: bool, now: int) -> None:
        """Tell which members a stack beats to now; none at the addresses `severed`.

        `hears_deaths` says that a launcher tells all members which processes have ended.
        """
        version = stack.beats_version
        if stack not in self._told and not version:
            self._told[stack] = 0
            # It is to be let in: others may beat to it before it knows that it was.
            self._heartbeat.answer(stack.me.incarnation, stack.config.group)
        elif self._told.get(stack) != version:
            self._told[stack] = version
            detection = stack.config.detection
            granted = self._heartbeat.beat(
                stack.me.incarnation,
                stack.config.group,
                detection // BEATS,
                stack.beats,
                stack.lease,
                window_of(detection),
                [member for member in stack.beats if member.address in severed],
                () if hears_deaths else unleased(stack.beats),
            )
            if stack.lease == 0:
                stack.leases_ended(granted, now)

    def hear(
        self, stack: Stack, severed: Collection[str], processes: PeerProcesses, now: int
    ) -> None:
        """Right before a stack's deadline: tell it which members were heard, and which are silent but run.

        The kernel is asked for those, but not across a partition (`severed`).
        """
        for incarnation, when in self._heartbeat.heard(stack.me.incarnation):
            stack.heard(incarnation, when)
        for incarnation, until in self._heartbeat.excuses(stack.me.incarnation):
            stack.excuse(incarnation, until)
        quiet = stack.quiet(now)
        for member in stack.beats if quiet else ():
            silent = member.incarnation in quiet and member.address not in severed
            if silent and processes.runs(member.incarnation):
                stack.lives(member.incarnation)

    def forget(self, stack: Stack) -> None:
        """A stack beats no more."""
        self._heartbeat.beat(stack.me.incarnation, stack.config.group, 1, ())
        self._told.pop(stack, None)

    def clear(self) -> None:
        """Tell everything anew, the next time."""
        self._told.clear()


def unleased(members: Collection[Member]) -> list[Member]:
    """The members that never learn of a death for certain: by TCP no process passes a pidfd."""
    return [member for member in members if not member.address.startswith("unix:")]
