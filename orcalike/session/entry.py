"""How a process gets into its group: which address it asks, and what came of each attempt."""

from __future__ import annotations

from collections.abc import Callable, Collection

from orcalike.errors import AuthenticationError, ConfigMismatch, JoinFailed
from orcalike.session.names import Lookup, has_name, numeric
from orcalike.session.options import JoinOptions
from orcalike.transport.drivers.addresses import split
from orcalike.transport.errors import NOT_PROVED, OTHER_VERSION
from orcalike.transport.view import Member, View
from orcalike.transport.wording import counted, listed

RETRY_STEP, RETRY_MAX = 0.02, 0.5
"""Seconds before all addresses are asked again: so much more with each attempt, up to a maximum."""

HOPELESS_MAX = 8
"""Attempts in a row, at each address one at the least, that no other process has proved the key in, or spoken this one's version."""

CLOSED = "it closed the connection"
"""How an attempt ends at a process that is asked for a group that it has not, or has not yet."""


class Deserted(JoinFailed):
    """The members that were there have left meanwhile: the group is to be made anew."""


class Entry:
    """The attempts of one process to get in; `targets()` are the addresses at which it may ask.

    `own()` is its own address.
    """

    def __init__(
        self,
        targets: Callable[[], tuple[str, ...]],
        own: Callable[[], str],
        options: JoinOptions,
    ) -> None:
        self._targets = targets
        self._own = own
        self._name = options.name
        self._place = options.place
        self._is_unanimous = options.is_unanimous
        self._insecure = options.insecure
        self._asks_all = False
        self.under_way = False
        """It is on its way in: an expulsion now is a reason to ask again, as another incarnation."""
        self.denied: str | None = None
        """Why the group refused; with `config: ` before it if the configurations differ."""
        self.trouble: str | None = None
        """What is wrong with the address that was asked last."""
        self.turned_out: str | None = None
        """The group let this member in and went on without it before it had joined: how it said so."""
        self._attempts = self._unproved = self._unlike = 0
        self._last_trouble = ""
        self._lookup: Lookup[tuple[str, ...]] | None = None

    def begin(self) -> None:
        """Ask, from the first address on."""
        self.under_way = True
        self._attempts = self._unproved = self._unlike = 0
        self.turned_out = None

    def look_up(self, done: Callable[[], None], of_all: bool) -> tuple[str, ...] | None:
        """Where to ask now, at one address or at all; None if names are looked up: `done()` is called then."""
        targets = self._targets()
        self._asks_all = of_all
        if not targets:  # all that were in it have ended: the launcher, which knows, ends the run
            return None
        asked = targets if of_all else (targets[self._attempts % len(targets)],)
        if not any(map(has_name, asked)):
            return asked
        self._lookup = Lookup(lambda: _numeric(asked), done)
        return None

    def looked_up(self) -> tuple[str, ...] | None:
        """Where to ask, if that was looked up; None if not, or with `trouble` if it is not known."""
        if self._lookup is None or not self._lookup.is_over:
            return None
        lookup, self._lookup = self._lookup, None
        try:
            found = self._usable(lookup.result())
        except OSError as error:
            self.trouble = str(error)
            return None
        if self._asks_all:
            return tuple(found)
        return (found[self._attempts // len(self._targets()) % len(found)],)

    def _usable(self, addresses: tuple[str, ...]) -> list[str]:
        """Those that are not this process's own, and of its kind: IPv4 or IPv6."""
        own = self._own()
        is_ipv6 = ":" in split(own)[1] if own else False
        others = [each for each in addresses if each != own]
        found = [each for each in others if (":" in split(each)[1]) == is_ipv6]
        if not found:
            raise OSError(
                f"{listed(others)} cannot be reached from {own}: one is IPv6"
                if others
                else f"{own} is this process itself"
            )
        return found

    def next_attempt(self, *, is_in: bool) -> tuple[float, bool] | None:
        """What the last attempt came to: None, or the seconds after which to ask the next address.

        True with it if another incarnation must ask, because the last one was expelled. Raises
        ConfigMismatch or JoinFailed if the group refused, is of another version, or no address is known; Deserted if the
        meeting place is empty; AuthenticationError if all that were asked lack this process's key.
        """
        self.check_refusal()
        trouble = self.turned_out or self.trouble
        if trouble is None:
            return None
        if not self._targets():
            raise JoinFailed(f"no member is known through which to join: {trouble}")
        if self._place is not None and not self._place.members():
            raise Deserted(f"all members have left: {trouble}")
        if is_in:
            return None
        anew = self.turned_out is not None
        self.turned_out = self.trouble = None
        self._attempts += 1
        self._last_trouble = trouble
        self._count_hopeless(trouble)
        all_asked = self._asks_all or self._attempts % len(self._targets()) == 0
        return min(RETRY_STEP * self._attempts, RETRY_MAX) if all_asked else 0.0, anew

    def check_refusal(self) -> None:
        """Raise ConfigMismatch or JoinFailed if the group has refused, or this member cannot take part."""
        if self.denied is not None:
            raise (ConfigMismatch if self.denied.startswith("config: ") else JoinFailed)(
                self.denied.removeprefix("config: ")
            )

    def _count_hopeless(self, trouble: str) -> None:
        """A connection can end in its handshake for other reasons, but not time after time; and another process may come there."""
        most = max(HOPELESS_MAX, len(self._targets()))
        self._unproved = self._unproved + 1 if NOT_PROVED in trouble else 0
        self._unlike = self._unlike + 1 if OTHER_VERSION in trouble else 0
        if self._unlike >= most:
            raise JoinFailed(f"the group at {listed(self._targets())} cannot be joined: {trouble}")
        if self._unproved >= most:
            raise AuthenticationError(
                f"the key of this process is not that of the group at {listed(self._targets())}: "
                f"{trouble}; all members take the same key=PATH, or have the same file (orcalike "
                "keygen --list shows its ids); a group that has none, by insecure=True, takes no key"
            )

    def why_out(self, donors: tuple[Member, ...], reached: Collection[str] = ()) -> str | None:
        """Why it is not in yet, as far as is known; one of `donors` is to give it the state.

        `reached` are the addresses of those that have greeted: their group has this name, and may be blocked.
        """
        if donors:
            givers = str(donors[0]) if len(donors) == 1 else f"one of {listed(donors)}"
            return f"the group's state has not come yet: {givers} is to give it"
        if self._is_unanimous and self._last_trouble:
            return f"the group was not made or found yet: {self._last_trouble}"
        targets = self._targets()
        if not targets:
            return None
        there = [target for target in targets if target in reached]
        silent = [target for target in targets if target not in reached]
        known = (
            f"{listed(there)} {'was' if len(there) == 1 else 'were'} reached, and this process "
            f"was not let into the group {self._name!r} yet, as while that is blocked"
        )
        answer = f"no answer from {', '.join(silent)} for the group {self._name!r}"
        if there:
            return f"{known}; {answer}" if silent else known
        if self._last_trouble == CLOSED:
            key = (
                "a key, and this process has none (insecure=True), or has "
                if self._insecure
                else ""
            )
            answer += f": {CLOSED}, as a process does whose group has {key}another name"
        return answer

    def too_late(
        self,
        timeout: float | None,
        view: View | None,
        donors: tuple[Member, ...],
        reached: Collection[str] = (),
        late: str | None = None,
    ) -> JoinFailed:
        """The time is over; `view` is the one that this process is in, if it is in one; `late`: what that lacks."""
        missing = ""
        if view is not None:
            missing = f"{f': {late}' if late else ''}; in it are {listed(view.replicas)}"
        elif why := self.why_out(donors, reached):
            missing = f"; {why}"
        if self._last_trouble and self._last_trouble not in missing:
            missing += (
                f"; it was tried {counted(self._attempts + 1, 'time')}, the last time: "
                f"{self._last_trouble}"
            )
        return JoinFailed(f"could not join the group within {timeout} s{missing}")


def _numeric(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """The same with their hosts' numbers; raises OSError if none is known."""
    found: list[str] = []
    troubles: list[OSError] = []
    for address in addresses:
        try:
            found += numeric(address)
        except OSError as error:
            troubles.append(error)
    if not found:
        raise troubles[0]
    return tuple(dict.fromkeys(found))
