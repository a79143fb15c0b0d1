"""The groups of managers that this process is a member of: it joins with the first use of a proxy.

It leaves when it ends; so does a forked child, which has none of its parent's groups.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing.util
import os
import shutil
import threading
from functools import partial
from typing import Any

from orcalike import objects
from orcalike.errors import JoinFailed, OrcalikeError
from orcalike.group import Group
from orcalike.objects.permits import BoundedPermits, Permits
from orcalike.session.joining import Joining, open_until_exit
from orcalike.session.options import make_options
from orcalike.session.private_folder import private_folder
from orcalike.transport.view import View

JOIN_WITHIN = 60.0
"""Seconds in which a process must have joined the manager's group, and have found an object."""

KINDS: dict[str, type[Any]] = {
    "list": objects.List,
    "dict": objects.Dict,
    "Namespace": objects.Dict,
    "Lock": objects.Lock,
    "RLock": objects.RLock,
    "Condition": objects.Condition,
    "Semaphore": Permits,
    "BoundedSemaphore": BoundedPermits,
    "Event": objects.Event,
    "Barrier": objects.Barrier,
    "Queue": objects.Queue,
    "Value": objects.Value,
    "Array": objects.List,
}
"""The classes of what a manager makes, by its name there. All members have them before they join."""


class Membership:
    """This process as a member of one manager's group."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.objects: dict[str, Any] = {}
        """Those that this process has used, by name."""
        group._runtime.table.expect_other_seeds()
        group._session.tells_loss = False  # the maker orders, and so has all that was ordered
        atexit.unregister(group.close)  # with those of `multiprocessing`, in its children, too
        self._end = multiprocessing.util.Finalize(self, _leave, args=(group,), exitpriority=-1)

    def share(self, kind: str, name: str, *args: Any) -> Any:
        """Make an object."""
        made = self.group.share(KINDS[kind], name, *args)
        self.objects[name] = made
        return made

    def find(self, kind: str, name: str) -> Any:
        """The object of that name, which some process has made."""
        found = self.group.find(KINDS[kind], name, timeout=JOIN_WITHIN)
        self.objects[name] = found
        return found

    def leave(self) -> None:
        """Leave the group."""
        self._end()


def _leave(group: Group) -> None:
    with contextlib.suppress(OrcalikeError):
        group._leave(orderly=False)  # each call has had its outcome


class Maker(Membership):
    """The process that has made the group: it goes on, however many of the others are lost."""

    def __init__(self) -> None:
        self._folder = private_folder()
        try:
            group = open_until_exit(
                Joining(partial(make_options, listen=f"unix:{self._folder}/manager"))
            )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        super().__init__(group)
        self._blocked = threading.Event()
        self.group._session.on_blocked = self._blocked.set
        self.group._session.on_view.append(self._viewed)
        thread = threading.Thread(target=self._reset, name="orcalike manager", daemon=True)
        thread.start()
        # For the process that made it alone, and not for a forked child.
        self._clear = multiprocessing.util.Finalize(
            self, shutil.rmtree, args=(self._folder, True), exitpriority=-2
        )

    def leave(self) -> None:
        """Leave the group, which no other process can join any more."""
        super().leave()
        self._clear()

    def _viewed(self, view: View | None) -> None:
        if view is None:
            self._blocked.set()

    def _reset(self) -> None:
        """Go on without those that were lost, as often as it must be, until the group is left."""
        while not self.group._closed:
            self._blocked.wait()
            self._blocked.clear()
            while not self.group._closed and self.group._session.blocked is not None:
                with contextlib.suppress(OrcalikeError):
                    self.group.reset(minimum=1, timeout=JOIN_WITHIN)


_locks: dict[str, threading.Lock] = {}
"""For joining, by address."""
_members: dict[str, Membership] = {}
"""The managers' groups that this process is in, by address."""


def _forget() -> None:
    _locks.clear()
    _members.clear()


os.register_at_fork(after_in_child=_forget)


def make_group() -> str:
    """Make a manager's group; returns the address at which processes join it."""
    maker = Maker()
    _members[maker.group.address] = maker
    return maker.group.address


def leave_group(address: str) -> None:
    """Leave a manager's group; its proxies are of no use in this process then."""
    membership = _members.get(address)
    if membership is not None:
        membership.leave()
        # Not before: a proxy that another thread uses meanwhile would join the group anew.
        _members.pop(address, None)
        _locks.pop(address, None)


def membership_in(address: str) -> Membership:
    """This process's membership in a manager's group; it joins with the first use."""
    return _members.get(address) or _join(address)


def _join(address: str) -> Membership:
    with _locks.setdefault(address, threading.Lock()):
        if address not in _members:
            if not os.path.exists(address.removeprefix("unix:")):
                raise JoinFailed(f"the manager at {address} was shut down, or has ended")
            group = open_until_exit(
                Joining(partial(make_options, seeds=address, timeout=JOIN_WITHIN))
            )
            _members[address] = Membership(group)
        return _members[address]
