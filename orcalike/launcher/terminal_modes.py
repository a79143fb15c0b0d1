"""How a run leaves its terminal: a rank that was ended while it had the echo off, as in `getpass`, does not put it back."""

from __future__ import annotations

import contextlib
import os
import termios

from orcalike.launcher.local_host import may_read_stdin


class TerminalModes:
    """The modes of the terminal on standard input, as they are when this is made; none without a terminal."""

    def __init__(self) -> None:
        self._before: list[int | list[bytes | int]] | None = None
        if os.isatty(0):
            with contextlib.suppress(termios.error):
                self._before = termios.tcgetattr(0)

    def put_back(self) -> None:
        """Have them again, unless the terminal is another program's now."""
        if self._before is not None and may_read_stdin():
            with contextlib.suppress(termios.error):  # the terminal has gone
                if termios.tcgetattr(0) != self._before:
                    termios.tcsetattr(0, termios.TCSANOW, self._before)
