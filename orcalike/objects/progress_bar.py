"""One progress bar for all members of a group."""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sized
from typing import TextIO, TypeVar

from orcalike.errors import ObjectDropped, OrcalikeError
from orcalike.group import Group
from orcalike.objects import language as orca
from orcalike.transport.view import View

T = TypeVar("T")

REPORT_EVERY = 0.2
"""Seconds between two writes of a member, while its last one is done."""
DRAW_EVERY = 0.1
"""Seconds between two drawings."""
LOOK_EVERY = 0.02
"""Seconds between two looks at the clock, as nearly as the number of items between them gives that."""

_numbers: weakref.WeakKeyDictionary[Group, dict[str, Iterator[int]]] = weakref.WeakKeyDictionary()


@orca.shared
class Tally:
    """How far all members are."""

    def __init__(self) -> None:
        self._done: dict[int, int] = {}
        """Items by incarnation; those of members that have left count, too."""
        self._totals: dict[int, int | None] = {}
        self._over: list[int] = []
        self._version = 0

    @orca.write
    def report(self, done: int, total: int | None, is_over: bool) -> None:
        """Say how far the caller is; once it is through, it has no more than it has done."""
        member = orca.caller().incarnation
        self._done[member] = done
        self._totals[member] = done if is_over else total
        if is_over and member not in self._over:
            self._over.append(member)
        self._version += 1

    @orca.read
    def now(self) -> tuple[int, int | None, list[int]]:
        """(items done, items in all if that is known, incarnations that are through or gone)."""
        return self._sums()

    def _sums(self) -> tuple[int, int | None, list[int]]:
        totals = list(self._totals.values())
        known = [total for total in totals if total is not None]
        total = sum(known) if known and len(known) == len(totals) else None
        return sum(self._done.values()), total, list(self._over)

    @orca.read
    def after(self, version: int) -> int:
        """Wait here until something was reported after that version; returns the new one."""
        return self._version

    @after.when
    def _(self, version: int) -> bool:
        return self._version > version

    def member_left(self, member: orca.Member) -> None:
        """It does no more: its items count, and its total is what it has done."""
        if member.incarnation in self._done:
            self._totals[member.incarnation] = self._done[member.incarnation]
        if member.incarnation not in self._over:
            self._over.append(member.incarnation)
        self._version += 1


def progress(
    items: Iterable[T], *, group: Group, total: int | None = None, name: str = "progress"
) -> Iterator[T]:
    """Go through `items`, and show how far all members of the group are: `for x in progress(...)`.

    Each member calls it with its own items; `total` is how many these are, if `len` does not say
    so. Rank 0 alone writes to its standard error: a bar that changes in a terminal, elsewhere one
    line at the end. Before its first item a member waits for the group, and never after: it reports
    some times a second, whatever an item takes.
    Bars of one name count as the first, the second and so on in each member alike.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    number = next(_numbers.setdefault(group, {}).setdefault(name, itertools.count()))
    tally = group.share(Tally, f"orcalike progress {number} of {name}")
    if group.rank == 0:
        Bar(tally, group, name, sys.stderr)
    last = tally.report.nowait(0, total, False)
    done, stride, look_at = 0, 1, 1
    looked = reported = time.monotonic()
    try:
        for item in items:
            yield item
            done += 1
            if done < look_at:
                continue
            now = time.monotonic()
            if now - looked < LOOK_EVERY / 2:
                stride *= 2
            elif now - looked > LOOK_EVERY * 2:
                stride = max(stride // 2, 1)
            looked, look_at = now, done + stride
            if now - reported >= REPORT_EVERY and last.done():
                reported = now
                with contextlib.suppress(ObjectDropped):  # the others were through before
                    last = tally.report.nowait(done, total, False)
    finally:
        with contextlib.suppress(OrcalikeError):  # the group is left, or lost
            tally.report.nowait(done, total, True)


class Bar:
    """What rank 0 writes."""

    def __init__(self, tally: Tally, group: Group, name: str, stream: TextIO) -> None:
        self._tally = tally
        self._group = group
        self._name = name
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._began = time.monotonic()
        self._is_closed = False
        self._lock = threading.Lock()
        group._session.on_view.append(self._viewed)
        threading.Thread(target=self._run, name="orcalike progress", daemon=True).start()

    def _run(self) -> None:
        """Draw what is new, until all members are through."""
        version = 0
        with contextlib.suppress(OrcalikeError):  # the group was left: see `_viewed`
            while True:
                version = self._tally.after(version)
                done, total, over = self._tally.now()
                if {member.incarnation for member in self._group.members} <= {*over}:
                    self._close()
                    self._group.drop(self._tally)
                    return
                if self._is_terminal:
                    self._draw(done, total)
                    time.sleep(DRAW_EVERY)

    def _viewed(self, view: View | None) -> None:
        if view is None:
            self._close()

    def _draw(self, done: int, total: int | None) -> None:
        with self._lock:
            if self._is_closed:
                return
            seconds = time.monotonic() - self._began
            rate = done / seconds if seconds > 0 else 0.0
            left = "?" if not rate or total is None else _clock((total - done) / rate)
            part = "" if not total else f"{min(done / total, 1.0):4.0%} "
            text = f"{self._name}: {part}{done:,}{'' if total is None else f'/{total:,}'}"
            self._write(f"\r{text} [{_clock(seconds)}<{left}, {rate:,.1f}/s]\x1b[K")

    def _close(self) -> None:
        """The last line, once."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._group._session.on_view.remove(self._viewed)
            done, total, _ = self._tally.now()
            seconds = time.monotonic() - self._began
            text = f"{self._name}: {done:,}{'' if total is None else f'/{total:,}'}"
            rate = done / seconds if seconds > 0 else 0.0
            start, end = ("\r", "\x1b[K\n") if self._is_terminal else ("", "\n")
            self._write(f"{start}{text} in {seconds:.1f} s, {rate:,.1f}/s{end}")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # it is closed
            self._stream.write(text)
            self._stream.flush()


def _clock(seconds: float) -> str:
    """`1:02:03`, or `02:03`."""
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
