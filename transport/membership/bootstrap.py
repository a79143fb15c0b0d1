"""Unanimous bootstrap: rank 0 makes the group once all other ranks have said that they are in no view.

No launcher knows here whether the group was made before: an engine starts and restarts processes,
and says nothing of groups. A rank 0 that made one whenever it is started would make a second
beside the living one.

*Round.* Rank 0 sends JOIN with the number of a round to all addresses at which ranks may be, and to
those of the ranks that have asked it to let them in: they need not be known otherwise. A process that is in a view answers INSIDE, and lets it in. One that is in none answers NOWHERE, and
with that promises to answer so to no other rank 0. The group is made when each other rank has
answered NOWHERE in this round, within D, no process has answered INSIDE, and each address has answered,
or cannot be reached, or D is over. All that promised are let in at once.

*Promise.* It is kept until the process is in a view, or its rank 0 gives it back, or is gone: the
link to it is down, and at its address is another process, or none that answers; or it has been
silent for longer than any process that lives may be. So two of rank 0 cannot both have the promises
of all: one has to be gone, or gives way.

*Two of rank 0* (two pods of one index, two launchers of one job) may have some promises each. The
lower incarnation comes first: the other gives its own back, and asks to be let in. It is denied
when the group is made, since its rank is taken.

So a second group is made only if no process answers that is in the first. Nothing of this is on
disk. The clock is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from orcalike.transport.errors import NOT_PROVED
from orcalike.transport.membership.effects import Effect
from orcalike.transport.membership.failure_detector import longest_silence
from orcalike.transport.membership.messages import (
    ControlMessage,
    Inside,
    Join,
    Nowhere,
    Taken,
)
from orcalike.transport.membership.state import (
    BOOTSTRAP,
    BootstrapCause,
    BootstrapState,
    Machine,
)
from orcalike.transport.view import Member
from orcalike.transport.wording import counted, listed

if TYPE_CHECKING:

    class Port(Protocol):
        """What this needs of the layer that it works for."""

        def contact_with(self, address: str, message: ControlMessage) -> None:
            """Send a control message to the endpoint at an address."""

        def make_group(self, joiners: list[Nowhere]) -> None:
            """Make the group, and let these in."""

        def join_failed(self, why: str) -> None:
            """The group was not made in this round: it is to be tried again."""

        def changed(self, change: Effect) -> None:
            """The state is another one."""

        def plan(self) -> None:
            """A deadline has changed."""


class Bootstrap:
    """One process's part in making the group."""

    def __init__(
        self,
        port: Port,
        join_through: Callable[[str, int], None],
        me: Member,
        options: dict[str, Any],
        size: int,
        detection: int,
    ) -> None:
        """`join_through` asks the endpoint at an address, at a time, to let this one in.

        `size` is the number of ranks, 0 if the group is made otherwise; `detection` is D in ns.
        """
        self._port = port
        self._join_through = join_through
        self._me = me
        self._options = {name: it for name, it in options.items() if it is not None}
        self.size = size
        self._detection = detection
        self._changes: list[Effect] = []
        self.machine = Machine("bootstrap", BootstrapState.FREE, BOOTSTRAP, self._changes)
        self.holder: Member | None = None
        """The other rank 0 that has this process's promise."""
        self._in_doubt = False
        """The link to it broke, and it is not known yet whether it is gone."""
        self._silent_at: int | None = None
        """When it will have been silent for too long, ns."""
        self._over_at: int | None = None
        """When the round under way is over, ns; None between two."""
        self.round = 0
        """Of the last round that was begun here; 0 if none was."""
        self._joiners: dict[int, str] = {}
        """By rank: where one is that has asked this process to let it in."""
        self._asked: dict[str, bool] = {}
        """The addresses of this round; whether an answer is still awaited."""
        self._answers: dict[int, Nowhere] = {}
        """Of this round, by rank."""
        self._troubles: dict[str, str] = {}
        """By address: why it has not answered as it should."""

    @property
    def deadline(self) -> int | None:
        """When `expire` is due, ns; None if nothing waits for the time."""
        times = (self._over_at, self._silent_at)
        return min((each for each in times if each is not None), default=None)

    @property
    def asks(self) -> bool:
        """Whether a round is under way here."""
        return self.machine.state is BootstrapState.ASKING

    # Rank 0.

    def begin(self, addresses: Iterable[str], now: int) -> None:
        """Begin a round: ask the processes at these addresses, if another rank 0 does not come first."""
        if self.holder is not None:
            self._join_through(self.holder.address, now)
            return
        self.round += 1
        self._asked = dict.fromkeys((*addresses, *self._joiners.values()), True)
        self._answers, self._troubles = {}, {}
        self._over_at = now + self._detection
        self._change(BootstrapCause.BEGUN)
        for address in self._asked:
            self._port.contact_with(address, self._join(self.round))
        self._port.plan()
        self._look(now)

    def expire(self, now: int) -> None:
        """The time of the round may be over, or that of a promise."""
        if self._over_at is not None and now >= self._over_at:
            self._look(now)
        if self._silent_at is not None and now >= self._silent_at:
            self._release()

    def answered(
        self, message: Nowhere | Taken | Inside, addresses: tuple[str, ...], now: int
    ) -> None:
        """The process at these addresses, its own first, has answered.

        A promise of an older round, or one that is late, does not count. That a group is made does.
        """
        if self._over_at is None:
            return
        name = addresses[0]
        match message:
            case Inside():
                self._end(BootstrapCause.FOUND)
                self._join_through(name, now)
            case _ if message.round != self.round or now >= self._over_at:
                return
            case Taken() if self._comes_first(message.holder):
                self._yield(message.holder, now)
            case Taken():
                where = message.holder.address
                self._note(addresses, f"{name} waits for another rank 0, at {where}")
            case Nowhere() if message.size != self.size:
                job = f"a job of {counted(message.size, 'process', 'processes')}"
                self._note(addresses, f"{name} is of {job}, not of {self.size}")
            case Nowhere():
                rank = message.member.rank
                if rank is not None and 0 < rank < self.size:  # else a rank 0 that has given way
                    self._answers[rank] = message
                self._note(addresses, "")
        self._look(now)

    def _comes_first(self, other: Member) -> bool:
        """Whether another rank 0 does; not one that was at this one's address, and so is gone."""
        return other.incarnation < self._me.incarnation and other.address != self._me.address

    def _note(self, addresses: tuple[str, ...], trouble: str) -> None:
        """No other answer of a process at these addresses is awaited in this round."""
        for address in addresses:
            if address in self._asked:
                self._asked[address] = False
                self._troubles[address] = trouble

    def _look(self, now: int) -> None:
        """Make the group, or give the round up, if all have answered or the time is over."""
        if self._over_at is None:
            return
        if now < self._over_at and any(self._asked.values()):
            return
        missing = [rank for rank in range(1, self.size) if rank not in self._answers]
        if missing:
            self._end(BootstrapCause.OVER)
            self._port.join_failed(self._why(missing))
        else:
            self._end(BootstrapCause.UNANIMOUS)
            self._port.make_group([self._answers[rank] for rank in sorted(self._answers)])

    def _end(self, cause: BootstrapCause) -> None:
        self._over_at = None
        self._change(cause)
        self._port.plan()

    def _yield(self, holder: Member, now: int) -> None:
        """Another rank 0 comes first: it has this one's promise, and may have those of all."""
        self._promise(holder, now)
        self._end(BootstrapCause.YIELDED)
        for address in self._asked:
            self._port.contact_with(address, self._join(0))
        self._port.join_failed(f"another rank 0 makes the group, at {holder.address}")

    def _why(self, missing: list[int]) -> str:
        """Which ranks are missing, and what is known about that."""
        ranks = f"{'rank' if len(missing) == 1 else 'ranks'} {listed(missing)}"
        troubles = [each for each in self._troubles.values() if each]
        if troubles and len(troubles) == len(
            self._asked
        ):  # else some are of no process of this job
            troubles = sorted(troubles, key=lambda each: NOT_PROVED in each)[:1]
        else:
            troubles = [each for each in troubles if NOT_PROVED not in each]
        said = "".join(f"; {each}" for each in troubles[:3])
        return f"{ranks} of {self.size} did not answer that the group is to be made{said}"

    # The other ranks, and a rank 0 that does not come first.

    def asked(self, member: Member, round_: int, now: int) -> None:
        """A process asks to be let in, or, in a round, for a promise; this one is in no view."""
        if not self.size or member.incarnation == self._me.incarnation:
            return
        self.linked(member.address, member.incarnation, now)
        if not round_:
            self._note_joiner(member)
            if self.holder is not None and member.incarnation == self.holder.incarnation:
                self._release()
        elif self.asks and self._me.incarnation < member.incarnation:
            self._port.contact_with(member.address, Taken(round_, self._me))
            return
        elif self.asks:
            self._yield(member, now)
        elif self.holder is None:
            self._promise(member, now)
            self._change(BootstrapCause.ASKED)
            for address in self._asked:  # of a round that is over: what was promised is given back
                self._port.contact_with(address, self._join(0))
        elif self.holder.incarnation != member.incarnation:
            self._port.contact_with(member.address, Taken(round_, self.holder))
            return
        answer = Nowhere(round_, self.size, self._me, self._options)
        self._port.contact_with(member.address, answer)

    def _note_joiner(self, member: Member) -> None:
        """A rank asks the one that may make the group to let it in: it has a say in that, too."""
        rank, address = member.rank, member.address
        if self._me.rank != 0 or rank is None or not 0 < rank < self.size:
            return
        self._joiners[rank] = address
        if self._over_at is not None and address not in self._asked:
            self._asked[address] = True
            self._port.contact_with(address, self._join(self.round))

    def lost(self, addresses: tuple[str, ...], incarnation: int | None, why: str, now: int) -> None:
        """A link to the process at these addresses broke, or could not be made, and there is no other."""
        holder = self.holder
        if holder is not None and holder.address in addresses:
            if incarnation not in (None, holder.incarnation):
                pass  # it was to another process, which had the address before or has it now
            elif self._in_doubt:
                self._release()
            else:  # perhaps only the link is gone
                self._in_doubt = True
                self._port.contact_with(holder.address, self._join(0))
        if self._over_at is not None:
            self._answers = {
                rank: answer
                for rank, answer in self._answers.items()
                if answer.member.address not in addresses
            }
            self._note(addresses, f"{addresses[0]}: {why}")
            self._look(now)

    def linked(self, address: str, incarnation: int | None, now: int) -> None:
        """A link to a process stands, or it was heard."""
        if self.holder is None or address != self.holder.address:
            return
        if incarnation == self.holder.incarnation:
            self._promise(self.holder, now)
        else:
            self._release()

    def _promise(self, holder: Member, now: int) -> None:
        """A rank 0 that is there has the promise of this process."""
        self.holder, self._in_doubt = holder, False
        self._silent_at = now + longest_silence(self._detection)
        self._port.plan()

    def _release(self) -> None:
        """No rank 0 has the promise of this process any more."""
        self.holder, self._in_doubt, self._silent_at = None, False, None
        if self.machine.state is BootstrapState.PROMISED:
            self._change(BootstrapCause.RELEASED)

    # The end.

    def entered(self) -> None:
        """This process is in a view."""
        self.holder, self._silent_at, self._over_at = None, None, None
        if self.size:
            self._change(BootstrapCause.INSTALLED)

    def end(self) -> None:
        """This process is out of the group for good."""
        self._over_at, self._silent_at, self.round = None, None, 0

    def _join(self, round_: int) -> Join:
        return Join(self._me, self._options, round_)

    def _change(self, cause: BootstrapCause) -> None:
        self.machine.change(cause)
        for change in self._changes:
            self._port.changed(change)
        self._changes.clear()
