"""How a process gets into its group: which address it asks, and what came of each attempt."""

from __future__ import annotations

from collections.abc import Callable

from orcalike.errors import AuthenticationError, ConfigMismatch, JoinFailed
from orcalike.session.meeting import Deserted, MeetingPlace
from orcalike.transport.errors import NOT_PROVED
from orcalike.transport.view import View
from orcalike.transport.wording import counted, listed

RETRY_STEP, RETRY_MAX = 0.02, 0.5
"""Seconds before all addresses are asked again: so much more with each attempt, up to a maximum."""

UNPROVED_MAX = 8
"""Attempts in a row, at each address one at the least, that no other process has proved the key in."""


class Entry:
    """The attempts of one process to get in; `targets()` are the addresses at which it may ask."""

    def __init__(self, targets: Callable[[], tuple[str, ...]], place: MeetingPlace | None) -> None:
        self._targets = targets
        self._place = place
        self.under_way = False
        """It is on its way in: an expulsion now is a reason to ask again, as another incarnation."""
        self.denied: str | None = None
        """Why the group refused; with `config: ` before it if the configurations differ."""
        self.trouble: str | None = None
        """What is wrong with the address that was asked last."""
        self.turned_out: str | None = None
        """The group let this member in and went on without it before it had joined: how it said so."""
        self._attempts = self._unproved = 0
        self._last_trouble = ""

    def begin(self) -> None:
        """Ask, from the first address on."""
        self.under_way = True
        self._attempts = self._unproved = 0
        self.turned_out = None

    def address(self) -> str:
        """Where to ask now."""
        targets = self._targets()
        return targets[self._attempts % len(targets)]

    def next_attempt(self, *, is_in: bool) -> tuple[float, bool] | None:
        """What the last attempt came to: None, or the seconds after which to ask the next address.

        True with it if another incarnation must ask, because the last one was expelled. Raises
        ConfigMismatch or JoinFailed if the group refused, or no address is known; Deserted if the
        meeting place is empty; AuthenticationError if all that were asked lack this process's key.
        """
        if self.denied is not None:
            raise (ConfigMismatch if self.denied.startswith("config: ") else JoinFailed)(
                self.denied.removeprefix("config: ")
            )
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
        self._count_unproved(trouble)
        all_asked = self._attempts % len(self._targets()) == 0
        return min(RETRY_STEP * self._attempts, RETRY_MAX) if all_asked else 0.0, anew

    def _count_unproved(self, trouble: str) -> None:
        """A connection can end in its handshake for other reasons, but not time after time."""
        self._unproved = self._unproved + 1 if NOT_PROVED in trouble else 0
        if self._unproved >= max(UNPROVED_MAX, len(self._targets())):
            raise AuthenticationError(
                f"the key of this process is not that of the group at {listed(self._targets())}: "
                f"{trouble}; all members take the same key=PATH, or have the same file (orcalike "
                "keygen --list shows its ids)"
            )

    def too_late(self, timeout: float | None, view: View | None) -> JoinFailed:
        """The time is over; `view` is the one that this process is in, if it is in one."""
        missing = ""
        if view is not None:
            missing = f"; in it are {listed(view.replicas)}"
        elif self._targets():
            missing = f"; no answer from {', '.join(self._targets())}"
        if self._last_trouble:
            missing += (
                f"; it was tried {counted(self._attempts + 1, 'time')}, the last time: "
                f"{self._last_trouble}"
            )
        return JoinFailed(f"could not join the group within {timeout} s{missing}")
