"""What the stacks and the heartbeats of a process report to each other.

The heartbeats get each stack's heartbeat peers, and the lease that the beats grant; each stack gets
the peers that there was contact with, and those whose processes live.
"""

from __future__ import annotations

from collections.abc import Collection

from orcalike.transport.drivers.heartbeat import Heartbeat
from orcalike.transport.drivers.key_ring import KeyRing
from orcalike.transport.drivers.peer_processes import PeerProcesses
from orcalike.transport.membership.lease import window_of
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member, share_host

BEATS = 5
"""In a detection time."""


class HeartbeatReport:
    """Between `heartbeat` and the stacks; a stack's peers are given when their version is a new one."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        self._heartbeat = heartbeat
        self._given: dict[Stack, int] = {}
        """The version of each stack's peers that the heartbeats have."""

    def give_keys(self, keys: KeyRing | None, insecure: bool) -> None:
        """Give the heartbeats the keys as they are now; `insecure`: they may do without."""
        self._heartbeat.beyond = keys is not None or insecure
        if keys is not None:
            self._heartbeat.set_keys([key.of_beats for key in keys.all()])

    def give_peers(
        self, stack: Stack, severed: Collection[str], receives_deaths: bool, now: int
    ) -> None:
        """Give the heartbeats the present peers of a stack; none at the addresses `severed`.

        `receives_deaths` says that a launcher reports to each member which processes of its host have ended.
        """
        version = stack.beats_version
        if stack not in self._given and not version:
            self._given[stack] = 0
            # It is to be let in: others may send it beats before it knows that it was.
            self._heartbeat.answer(stack.me.incarnation, stack.config.group)
        elif self._given.get(stack) != version:
            self._given[stack] = version
            detection = stack.config.detection
            informed = receives_deaths or stack.alarm is not None  # by the near road
            granted = self._heartbeat.beat(
                stack.me.incarnation,
                stack.config.group,
                detection // BEATS,
                stack.beats,
                stack.lease,
                window_of(detection),
                [member for member in stack.beats if member.address in severed],
                unleased(stack.me.address, stack.beats, informed, stack.unleased),
            )
            if stack.answers and not stack.beats:
                self._heartbeat.answer(stack.me.incarnation, stack.config.group)
            if stack.lease == 0:
                stack.leases_ended(granted, now)

    def report_contact(
        self, stack: Stack, severed: Collection[str], processes: PeerProcesses, now: int
    ) -> None:
        """Right before a stack's deadline: report contact with its peers, and which are silent but run.

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
        """A stack has no heartbeat peers any more."""
        self._heartbeat.beat(stack.me.incarnation, stack.config.group, 1, ())
        self._given.pop(stack, None)

    def clear(self) -> None:
        """Give all peers anew, the next time."""
        self._given.clear()


def unleased(
    own: str, members: Collection[Member], informed: bool, without: Collection[int] = ()
) -> list[Member]:
    """The members that never learn for certain that the one at the address `own` has ended (H13), and those `without`.

    On another host none does; on the same one in a TCP group, if they are `informed`: by a launcher's word, or by the
    near road, where processes pass pidfds.
    """
    return [
        member
        for member in members
        if member.incarnation in without
        or not share_host(own, member.address)
        or not (informed or member.address.startswith("unix:"))
    ]
