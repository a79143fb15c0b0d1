"""The listeners of this process: groups that are to be reached at the same place share one.

So a process has one port, which a firewall, a hostfile or a launcher can know, however many groups it is
in. A group is named in each greeting; two members of one group in one process have a listener each.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Hashable

from orcalike.transport.drivers.key_ring import KeyRing
from orcalike.transport.drivers.listener import Listener

_log = logging.getLogger("orcalike")


class SharedListener:
    """A listener, and its users: the groups, one member of each."""

    def __init__(
        self, place: Hashable, sock: socket.socket, address: str, keys: KeyRing | None
    ) -> None:
        self.place = place
        self.address = address
        """Where others reach it."""
        self.keys = keys
        self.groups: set[str] = set()
        self.listener = Listener(_log.log, keys)
        try:
            self.listener.listen(sock, address)
        except BaseException:
            sock.close()
            self.close()
            raise

    def fits(self, place: Hashable, group: str, keys: KeyRing | None) -> bool:
        """Whether a group can use it as well."""
        return place == self.place and group not in self.groups and _ids(keys) == _ids(self.keys)

    def close(self) -> None:
        """Listen no more."""
        self.listener.close()
        if self.address.startswith("unix:"):
            with contextlib.suppress(OSError):  # the launcher has removed it if the run ends
                os.unlink(self.address.removeprefix("unix:"))


def _ids(keys: KeyRing | None) -> frozenset[bytes]:
    return frozenset(key.id for key in keys.all()) if keys is not None else frozenset()


class _Listeners:
    """Those that are open; `lock` is held while one is opened or closed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open: list[SharedListener] = []


_here = _Listeners()


def take(
    place: Hashable,
    group: str,
    keys: KeyRing | None,
    listen: Callable[[], tuple[socket.socket, str]],
) -> SharedListener:
    """The listener at a place for a group; `listen()` gives socket and address of a new one.

    Raises what `listen` does, and OrcalikeError if no heartbeats can come there.
    """
    with _here.lock:
        shared = next((each for each in _here.open if each.fits(place, group, keys)), None)
        if shared is None:
            shared = SharedListener(place, *listen(), keys)
            _here.open.append(shared)
        shared.groups.add(group)
        return shared


def is_member(place: Hashable, group: str) -> bool:
    """Whether this process listens for that group, at that place, already."""
    with _here.lock:
        return any(each.place == place and group in each.groups for each in _here.open)


def give_back(shared: SharedListener, group: str) -> None:
    """The group uses it no more; it is closed with its last user."""
    here = _here
    with here.lock:
        shared.groups.discard(group)
        if not shared.groups and shared in here.open:
            here.open.remove(shared)
            shared.close()


def _leave_to_parent() -> None:
    """In a forked child: its copies of the sockets go; the files are its parent's."""
    global _here
    before, _here = _here, _Listeners()
    for shared in before.open:
        shared.listener.close()


os.register_at_fork(after_in_child=_leave_to_parent)
