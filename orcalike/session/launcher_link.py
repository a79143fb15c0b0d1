"""One member's use of the line to the launcher (`control_channel`): what it receives, and reports.

Reports come on a thread of its own; each is handed on to the pump, and acted on while
nothing runs in a stack.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from orcalike.launch_protocol import control_channel
from orcalike.launch_protocol.control_lines import Describe, Described
from orcalike.transport.drivers.partition import sever
from orcalike.transport.drivers.pump import Pump
from orcalike.transport.view import Member, View


def report_joining(link: LauncherLink | None, pump: Pump, incarnation: int) -> None:
    """This process asks to be let into a group as this member: what a rank has started has no link, and reports that alone."""
    if link is not None:
        link.joining(incarnation)
    else:  # then its end is certain to others, and the leases that it grants them are of use
        pump.receives_deaths = control_channel.report_member(incarnation)


class LauncherLink:
    """What a launcher and one member of one group report to each other; `addresses`: where each listens."""

    def __init__(
        self,
        group: str,
        pump: Pump,
        addresses: Mapping[int | None, str],
        cast_ended: Callable[[set[int]], None],
        changed: Callable[[], None],
        describe: Callable[[Describe], Described],
        make: Callable[[int], None],
        *,
        shares_memory: Callable[[], bool],
    ) -> None:
        """`cast_ended` reports the ranks that have ended to the group; `changed` is called for each report.

        `describe` answers a question how the group stands, and `make` makes it, inside of the pump. `shares_memory`: whether
        the order is in shared memory, so that no member is the sequencer.
        """
        self.ended: set[int] = set()
        """The ranks that have ended, by the launcher's word."""
        self._group, self._pump, self._addresses = group, pump, addresses
        self._cast_ended, self._changed = cast_ended, changed
        self._describe, self._make = describe, make
        self._incarnation = 0
        """Of the member that joins, or is in."""
        self._cast: set[int] = set()
        self._cut: frozenset[int | None] = frozenset()
        self._shares_memory = shares_memory
        self._is_oldest = False

    def listen(self) -> None:
        """Take what the launcher reports from now on, and what it has reported before."""
        control_channel.listen(self._ranks_ended)
        control_channel.listen_make(self._maker_named)
        control_channel.listen_died(self._member_died)
        control_channel.listen_gone(self._member_gone)
        self._pump.receives_deaths = control_channel.is_open()
        control_channel.listen_cut(self._network_cut)
        control_channel.listen_describe(self._asked)

    def forget(self) -> None:
        """Take no more reports; a forked child may call it."""
        control_channel.forget(self._ranks_ended)
        control_channel.forget(self._maker_named)
        control_channel.forget(self._member_died)
        control_channel.forget(self._member_gone)
        control_channel.forget(self._network_cut)
        control_channel.forget(self._asked)

    def leaving(self) -> None:
        """This process leaves the group."""
        control_channel.report_leaving(self._group)

    def leave(self) -> None:
        """Take no more reports, and report that this process is in the group no more."""
        self.forget()
        control_channel.report_left(self._group)

    # Reports of the launcher.

    def _ranks_ended(self, ranks: set[int]) -> None:
        self.ended |= ranks
        self._changed()
        self._cast_ended_ranks()

    def _maker_named(self, incarnation: int) -> None:
        """This process is to make a group, as a member that may not be this one any more (ADR-23)."""

        def make(now: int) -> None:
            if incarnation == self._incarnation:
                self._make(now)

        self._pump.later(lambda: self._pump.call(make))

    def _member_died(self, incarnation: int) -> None:
        self._pump.later(lambda: self._pump.report_death(incarnation))

    def _member_gone(self, incarnation: int) -> None:
        self._pump.later(lambda: self._pump.report_gone(incarnation))

    def _network_cut(self, others: frozenset[int | None]) -> None:
        self._cut = others
        self._pump.later(lambda: self._pump.call(self._cut_off))

    def _cut_off(self, now: int) -> None:
        cut = self._cut  # as it is now: calls of `later` may come in any order
        sever(self._pump, [self._addresses[rank] for rank in cut if rank in self._addresses])

    def _asked(self, question: Describe) -> None:
        def answer(now: int) -> None:
            control_channel.report_state(self._describe(question))

        self._pump.later(lambda: self._pump.call(answer))

    # Reports of the member.

    def joining(self, incarnation: int) -> None:
        """This process asks to be let in as this member, or makes the group."""
        self._incarnation = incarnation
        self._cast = set()
        control_channel.report_joining(self._group, incarnation)

    def viewed(self, view: View, incarnation: int) -> None:
        """A primary view was installed; its oldest member reports to the group which ranks have ended."""
        became_oldest = not self._is_oldest
        self._is_oldest = view.position(incarnation) == 0
        self._report_in()
        if self._is_oldest and became_oldest:
            self._cast = set()  # the oldest before may not have cast it
            if self.ended:
                threading.Thread(
                    target=self._cast_ended_ranks, name="orcalike", daemon=True
                ).start()
        # A death is certain, too, if it is reported before the member is known.
        for member in view.members:
            if control_channel.has_died(member.incarnation):
                self._member_died(member.incarnation)

    def blocked(self, missing: tuple[Member, ...], rule: str) -> None:
        """No primary view can be formed without these."""
        control_channel.report_blocked(self._group, missing, rule)

    def lacks(self, needed: int, rule: str) -> None:
        """A call waits until there are so many members with replicas; 0: none does any more."""
        if needed:
            control_channel.report_lacking(self._group, needed, rule)
        else:
            self._report_in()

    def hosts(self, number: int) -> None:
        """This process runs so many others that are members of the group, or are to be."""
        control_channel.report_hosts(self._group, number)

    def _report_in(self) -> None:
        if self._shares_memory():
            control_channel.report_shared_order(self._group)
        elif self._is_oldest:
            control_channel.report_sequencer(self._group)
        else:
            control_channel.report_unblocked(self._group)

    def _cast_ended_ranks(self) -> None:
        if self._is_oldest and self.ended - self._cast:
            self._cast = set(self.ended)
            self._cast_ended(set(self.ended))
