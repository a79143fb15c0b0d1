"""The picture of `orcalike top`, and its keys."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from orcalike.cli.run_tables import (
    Member,
    Process,
    Rates,
    complaints,
    figure,
    memory_text,
    number_text,
    parts_of_run,
    percent_text,
    state_of,
    title_of_run,
    wait_of,
)
from orcalike.cli.runs import Looked
from orcalike.transport.wording import visible

_HEAD = (
    *("RANK", "HOST", "PID", "STATE", "VIEW", "CPU", "RSS", "WRITES/s", "LAG", "GUARDED"),
    "WAITS FOR",
)
_RIGHT = frozenset({"RANK", "PID", "VIEW", "CPU", "RSS", "WRITES/s", "LAG", "GUARDED"})
#: What `s` goes through; all but the first sort the largest up.
_SORTS = ("RANK", "CPU", "RSS", "WRITES/s", "LAG", "GUARDED")
#: What a narrow terminal does without, the first first.
_LEFT_OUT = ("HOST", "PID", "VIEW", "RSS", "GUARDED", "CPU", "LAG", "WRITES/s")
#: Between two columns.
_GAP = 2
#: The longest wait for a key at a time: the kernel takes 24.8 days at the most.
LOOK_SECONDS_MAX = 3600.0


#: They wait while the terminal is set, and set back.
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)


class _Signalled(BaseException):
    """One of these signals has come."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class TopView:
    """`look()` gives what the runs answer now; nothing when they have ended.

    If none answers, what they have answered before stays.
    """

    def __init__(self, look: Callable[[], Looked], each: float) -> None:
        self._look = look
        self._each = each
        self._rates = Rates()
        self._runs: list[dict[str, Any]] = []
        self._silent: list[str] = []
        self._sort = 0
        self._paused = False

    def run(self) -> bool:
        """Show it until `q` or Ctrl-C; whether the runs have ended before.

        The terminal is as it was when this ends, also by a signal, and while Ctrl-Z stops it.
        """
        with _deferred_signals():
            while True:
                try:
                    with _single_keys() as next_key, Live(screen=True, auto_refresh=False) as live:
                        return self._show(live, next_key)
                except KeyboardInterrupt:
                    return False
                except _Signalled as signalled:
                    if signalled.number != signal.SIGTSTP:
                        raise click.exceptions.Exit(128 + signalled.number) from None
                    os.kill(os.getpid(), signal.SIGSTOP)

    def _show(self, live: Live, next_key: Callable[[float | None], str]) -> bool:
        """Until `q`, or the end of the runs, which it returns."""
        look_at = time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        try:
            while True:
                if not self._paused and time.monotonic() >= look_at:
                    if not self._see():
                        return True
                    look_at = time.monotonic() + self._each
                live.update(self._picture(live.console.width), refresh=True)
                rest = None if self._paused else max(look_at - time.monotonic(), 0.0)
                match next_key(rest):
                    case "q":
                        return False
                    case "s":
                        self._sort = (self._sort + 1) % len(_SORTS)
                    case "p":
                        self._paused = not self._paused
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    def _see(self) -> bool:
        """Look; whether there is a run."""
        found = self._look()
        self._silent = found.silent
        if found.answers:
            self._runs = found.runs
            self._rates.note(found.runs)
        return bool(found.answers or found.silent)

    def _picture(self, width: int) -> Group:
        parts: list[Text | Table] = []
        for run in self._runs:
            parts.append(Text(title_of_run(run), style="bold"))
            for title, rows in parts_of_run(run):
                parts.append(self._table(run["job"], title, rows, width))
            lines = [line for group in run["groups"] for line in complaints(group)]
            parts += [Text(line, style="red") for line in lines]
        parts += [Text(text, style="red") for text in self._silent]
        state = " · paused" if self._paused else ""
        keys = f"q quit · s sort ({_SORTS[self._sort]}) · p pause{state}"
        return Group(*parts, Text(keys, style="dim"))

    def _table(
        self, job: str, title: str, rows: list[tuple[Process, Member | None]], width: int
    ) -> Table:
        if self._sort:
            rows = sorted(rows, key=lambda row: self._key(job, *row), reverse=True)
        cells = [tuple(map(visible, self._cells(job, *row))) for row in rows]
        shown = _columns_that_fit(cells, width)
        table = Table(title=escape(title), title_justify="left", box=None, pad_edge=False)
        for column in shown:
            name = _HEAD[column]
            justify = "right" if name in _RIGHT else "left"
            table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
        for row in cells:
            table.add_row(*(escape(row[column]) for column in shown))
        return table

    def _key(self, job: str, process: Process, member: Member | None) -> float:
        """What a row is sorted by; what is not known is least."""
        values = {
            "CPU": self._rates.cpu(job, process["pid"]),
            "RSS": process["rss"],
            "WRITES/s": self._rates.sent(job, process["pid"]),
            "LAG": figure(member, "lag"),
            "GUARDED": figure(member, "guarded"),
        }
        value = values[_SORTS[self._sort]]
        return -1.0 if value is None else float(value)

    def _cells(self, job: str, process: Process, member: Member | None) -> tuple[str, ...]:
        return (
            str(process["role"]),
            process["host"],
            str(process["pid"]),
            state_of(process, member),
            number_text(figure(member, "view")),
            percent_text(self._rates.cpu(job, process["pid"])),
            memory_text(process["rss"]),
            number_text(self._rates.sent(job, process["pid"]), ".0f"),
            number_text(figure(member, "lag")),
            number_text(figure(member, "guarded")),
            wait_of(process),
        )


def _columns_that_fit(rows: list[tuple[str, ...]], width: int) -> list[int]:
    """The columns that a terminal so wide shows; the last may be cut."""
    widths = [max(map(cell_len, column)) + _GAP for column in zip(_HEAD, *rows, strict=True)]
    widths[-1] = len(_HEAD[-1])
    shown = list(range(len(_HEAD)))
    for name in _LEFT_OUT:
        if sum(widths[column] for column in shown) <= width:
            break
        shown.remove(_HEAD.index(name))
    return shown


@contextlib.contextmanager
def _deferred_signals() -> Iterator[None]:
    """Such a signal waits until it is let through, and raises then; one that is ignored stays so."""

    def raise_it(number: int, frame: object) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # one is enough
        raise _Signalled(number)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    handlers = {
        number: signal.signal(number, raise_it)
        for number in _SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _single_keys() -> Iterator[Callable[[float | None], str]]:
    """The terminal gives each key at once, and does not show it.

    What it yields waits for a key, so many seconds at the most; "" if none came.
    """
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    key = select.poll()
    key.register(descriptor, select.POLLIN)

    def next_key(seconds: float | None) -> str:
        if not key.poll(None if seconds is None else min(seconds, LOOK_SECONDS_MAX) * 1000):
            return ""
        return os.read(descriptor, 1).decode(errors="replace") or "q"  # the terminal is gone

    try:
        yield next_key
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
