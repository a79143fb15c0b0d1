"""Messages of views that are still to come: kept until the view is there, within bounds.

A member of the next view may speak in it before this endpoint has heard of that view. What is kept
counts with what its objects need beside its bytes: for each peer, for all that no view known here
has, and in all. A peer that sends more loses its link, and with it what was kept of it; it makes
another, and a change of view repairs what was lost, as after any break.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

OVERHEAD = 512
"""Bytes that a message needs here beside its own: the objects, and a place in a list."""

MEMBER_BYTES_MAX = 33554432
"""Of one member: two messages of the largest size."""

OTHER_BYTES_MAX = 65536
"""Of one endpoint that is in no view that is known here."""

OTHERS_BYTES_MAX = 1048576
"""Of all such."""

ALL_BYTES_MAX = 67108864
"""Of all, members or not."""


class Entry(NamedTuple):
    """A message that waits for its view."""

    key: int
    is_cast: bool
    message: Any
    peer: Any


class Early:
    """Messages of views that are still to come."""

    def __init__(self) -> None:
        self._entries: list[tuple[Entry, int]] = []
        self._members: dict[Hashable, int] = {}
        self._others: dict[Hashable, int] = {}

    @property
    def bytes(self) -> int:
        """All that is kept, with its overhead."""
        return sum(self._members.values()) + sum(self._others.values())

    def keep(self, entry: Entry, size: int, *, is_member: bool) -> Any:
        """Keep a message of `size` bytes; returns the peer that there is no room for, or None.

        That one's link is to be closed: nothing of it is kept any more.
        """
        peer, size = entry.peer, size + OVERHEAD
        used = self._members if is_member else self._others
        used[peer] = used.get(peer, 0) + size
        self._entries.append((entry, size))
        if used[peer] > (MEMBER_BYTES_MAX if is_member else OTHER_BYTES_MAX):
            return self.forget(peer)
        if not is_member and sum(self._others.values()) > OTHERS_BYTES_MAX:
            return self.forget(max(self._others, key=self._others.__getitem__))
        if self.bytes > ALL_BYTES_MAX:
            return self.forget(max(self._members, key=self._members.__getitem__))
        return None

    def forget(self, peer: Any) -> Any:
        """Keep nothing of `peer`; returns it."""
        if peer in self._members or peer in self._others:
            self._members.pop(peer, None)
            self._others.pop(peer, None)
            self._entries = [each for each in self._entries if each[0].peer is not peer]
        return peer

    def take(self) -> list[Entry]:
        """All, in the order in which it came; nothing is kept any more."""
        entries = [entry for entry, _ in self._entries]
        self.clear()
        return entries

    def clear(self) -> None:
        """Keep nothing."""
        self._entries.clear()
        self._members.clear()
        self._others.clear()
