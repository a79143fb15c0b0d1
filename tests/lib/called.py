"""Calls as their callers saw them: each caller writes down when it called what, and what came of it.

A history that the product keeps makes a task of each call. Here nothing is in the way of a call, so the short ways of
writes and reads are in what is checked. A caller is a thread or a coroutine; its file is mapped, so that what it has
written down is there when its process is killed.

There is a line before each call and one after it. A call without the second may have run, or not, or may run yet.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import orcalike as orca
from orcalike.history_check.blackbox import NEVER, Call, linearizable
from orcalike.history_check.models import ModelOf
from orcalike.history_check.records import Violation
from orcalike.transport.wording import counted

ROOM = 1 << 22
"""Bytes by which a file grows; those that are not written to take no space."""

LAST = "last"
"""The caller, in each process, that reads when all writes are over."""

GROWING = "counter "
"""How the names of objects begin of which each write makes the results larger."""


class CallLog:
    """What one caller called, in a file of its own."""

    def __init__(self, folder: Path, caller: str) -> None:
        """`caller` begins with the name of its process: `process.caller`."""
        folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(folder / f"{caller}.calls", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self._size = self._written = self._calls = 0
        self._grow()

    def _grow(self) -> None:
        self._size += ROOM
        os.ftruncate(self._file, self._size)
        self._map = mmap.mmap(self._file, self._size)

    def _write(self, *facts: object) -> None:
        line = json.dumps(facts).encode() + b"\n"
        if self._written + len(line) > self._size:
            self._grow()
        self._map[self._written : self._written + len(line)] = line
        self._written += len(line)

    def begin(self, name: str, operation: str, *args: object) -> int:
        """A call is about to be made; returns its number."""
        self._calls += 1
        self._write(self._calls, time.monotonic_ns(), name, operation, args)
        return self._calls

    def end(self, number: int, outcome: Callable[[], object]) -> Any:
        """Take its outcome, and return the result. What the operation raised is its result, too.

        None if it has been withdrawn, or is not known. Other errors of orcalike are raised.
        """
        try:
            value = outcome()
        except orca.InvocationTimeout as error:
            if error.outcome == "withdrawn":
                self._write(number)
            return None
        except orca.OrcalikeError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is checked
            value = f"{type(error).__name__}: {error}"
        self._write(number, time.monotonic_ns(), value)
        return value

    async def end_of(self, number: int, awaited: Awaitable[object]) -> Any:
        """The same of what is awaited."""
        try:
            value = await awaited
        except Exception as error:  # noqa: BLE001 - it is raised again there
            failure = error
            return self.end(number, lambda: _raise(failure))
        return self.end(number, lambda: value)


def _raise(error: Exception) -> NoReturn:
    raise error


@dataclass(frozen=True, slots=True)
class Called:
    """One call, and its caller."""

    process: str
    is_last: bool
    """It reads what there is when all writes are over."""
    call: Call


def load_calls(folder: Path) -> dict[str, list[Called]]:
    """All calls by object, in the order in which they began; without those that were withdrawn."""
    found: dict[str, list[Called]] = defaultdict(list)
    for path in sorted(folder.glob("*.calls")):
        process, _, caller = path.stem.partition(".")
        for name, call in _calls_in(path):
            found[name].append(Called(process, caller == LAST, call))
    return {name: sorted(made, key=lambda each: each.call.invoked) for name, made in found.items()}


def _calls_in(path: Path) -> Iterator[tuple[str, Call]]:
    """The calls of one caller, each with its object."""
    begun: dict[int, tuple[str, Call]] = {}
    for line in path.read_bytes().split(b"\n")[:-1]:
        if b"\0" in line:
            break  # the process was killed as it wrote that
        number, *facts = map(_plain, json.loads(line))
        match facts:
            case [invoked, name, operation, args]:
                begun[number] = name, Call(invoked, NEVER, operation, args)
            case [returned, value]:
                name, call = begun.pop(number)
                yield name, replace(call, returned=returned, value=value)
            case []:
                del begun[number]
    yield from begun.values()


def _plain(value: Any) -> Any:
    """As it was before it was written down: what is a sequence was a tuple."""
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def check_calls(
    calls: dict[str, list[Called]],
    model_of: ModelOf,
    reads: Collection[str],
    is_fresh: Callable[[Called], bool],
) -> list[Violation]:
    """What is wrong with them: each object must be linearizable.

    `reads` are the operations that run in the caller's process alone; those that are fresh are part of that. Where each
    write makes the results larger, no process must see them become smaller.
    """
    found = []
    for name, made in sorted(calls.items()):
        known = model_of(name)
        assert known is not None, name
        model, start = known
        ordered = [each.call for each in made if each.call.operation not in reads or is_fresh(each)]
        verdict = linearizable(ordered, model, start)
        if not verdict:
            why = "no linearization" if verdict is False else "no verdict"
            what = f"{name!r}: {why} of its {counted(len(ordered), 'call')}"
            found.append(Violation("I20", "", what))
        if name.startswith(GROWING):
            found += _steps_back(name, made)
    return found


def _steps_back(name: str, made: list[Called]) -> list[Violation]:
    """I22: what a process calls shows all that its calls have shown that were over by then."""
    found = []
    for process in sorted({each.process for each in made}):
        shown = [
            (each.call, each.call.value)
            for each in made
            if each.process == process and isinstance(each.call.value, int)
        ]
        over = sorted(shown, key=lambda it: it[0].returned)
        most, ended = 0, 0
        for call, value in shown:
            while over[ended][0].returned < call.invoked:
                most = max(most, over[ended][1])
                ended += 1
            if value < most:
                what = f"{name!r}: {call.operation} shows {value} after {most}"
                found.append(Violation("I22", process, what))
    return found
