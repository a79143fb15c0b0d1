"""What the launcher's standard input has, for a rank 0 on another host."""

from __future__ import annotations

import os
import selectors
from functools import partial

from orcalike.launcher.frames import WINDOW
from orcalike.launcher.local_host import may_read_stdin
from orcalike.launcher.nonblocking import reopen
from orcalike.launcher.remote_child import RemoteChild
from orcalike.launcher.timers import Timers

READ_SIZE = 1 << 14
#: How often a background job looks whether it has the terminal now.
LOOK_SECONDS = 0.5


class InputRelay:
    """It reads ahead of the process by `WINDOW` bytes at the most."""

    def __init__(self, selector: selectors.BaseSelector, timers: Timers) -> None:
        self._selector, self._timers = selector, timers
        self._descriptor = 0
        """What is read: a descriptor of the launcher's own, once a process wants what comes there."""
        self._child: RemoteChild | None = None
        self._credit = 0
        self._watched = self._at_end = False
        self._is_file = False
        """Whether it can always be read, so that no event says so."""

    def attend(self, child: RemoteChild) -> None:
        """Give this process what comes from now on."""
        if self._descriptor == 0:  # other processes may read it, too, and take what was there
            self._descriptor = reopen(0, os.O_RDONLY)
        self._child, self._credit = child, WINDOW
        child.on_input_taken = partial(self._taken, child)
        if self._at_end:
            child.give_input(b"")
        else:
            self._go_on()

    def _taken(self, child: RemoteChild, count: int) -> None:
        if child is self._child:
            self._credit = min(WINDOW, self._credit + count)
            self._go_on()

    def _go_on(self) -> None:
        """Read when there is something, as long as it can be passed on."""
        wanted = not self._at_end and self._credit >= READ_SIZE
        if wanted and not may_read_stdin():
            self._unwatch()
            self._timers.at("input", LOOK_SECONDS, self._go_on)
        elif wanted and self._is_file:
            self._timers.at("input", 0.0, self._read)
        elif wanted and not self._watched:
            try:
                self._selector.register(self._descriptor, selectors.EVENT_READ, self._read)
                self._watched = True
            except PermissionError:  # a file, or /dev/null
                self._is_file = True
                self._go_on()
        elif not wanted:
            self._unwatch()

    def _unwatch(self) -> None:
        if self._watched:
            self._selector.unregister(self._descriptor)
            self._watched = False

    def _read(self) -> None:
        child = self._child
        if child is None or child.ended:
            self._unwatch()
            return
        if may_read_stdin():
            self._pass_on(child)
        self._go_on()

    def _pass_on(self, child: RemoteChild) -> None:
        try:
            data = os.read(self._descriptor, READ_SIZE)
        except BlockingIOError:
            return
        except OSError:  # the terminal has gone
            data = b""
        child.give_input(data)
        self._credit -= len(data)
        self._at_end = not data
