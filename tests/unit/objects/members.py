"""Members in one process, and classes whose objects are shared as soon as they are made.

CPython's own tests make objects of the type that they are given: `type2test([1, 2])`. What they get
here is an object that a group has shared, with a replica at each of its members.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import orcalike as orca
from orcalike.testing import Members

DEADLINE = 100.0


@contextlib.contextmanager
def members(count: int) -> Iterator[list[orca.Group]]:
    """A group of so many members in this process, by rank."""
    with contextlib.closing(Members(count, DEADLINE)) as groups:
        yield [*groups]


class Lab:
    """Makes shared objects for tests, at one member, and compares their replicas."""

    _names = itertools.count()

    def __init__(self, groups: list[orca.Group]) -> None:
        self.groups = groups
        self.made: list[tuple[type[Any], str, Any]] = []

    def share(self, cls: type[Any], *args: Any, **kwargs: Any) -> Any:
        """A new object, shared by the first member."""
        name = f"{cls.__name__} {next(self._names)}"
        shared = self.groups[0].share(cls, name, *args, **kwargs)
        self.made.append((cls, name, shared))
        return shared

    def at_each(self, cls: type[Any], *args: Any, **kwargs: Any) -> list[Any]:
        """A new object as each member has it."""
        first = self.share(cls, *args, **kwargs)
        name = self.made[-1][1]
        return [first, *(group.find(cls, name, timeout=DEADLINE) for group in self.groups[1:])]

    def compare(self, state: Callable[[Any], Any] = vars) -> None:
        """Fail if the replicas of an object differ; then all of them are dropped."""
        made, self.made = self.made, []
        for group in self.groups:
            group.fence(timeout=DEADLINE)
        for cls, name, shared in made:
            for group in self.groups[1:]:
                there = group.find(cls, name, timeout=DEADLINE)
                seen, wanted = (shown(state(each)) for each in (there, shared))
                assert seen == wanted, f"{name} differs: {seen:.200} and {wanted:.200}"
            self.groups[0].drop.nowait(shared)


def shown(value: object) -> str:
    """A value for people, without the addresses of what is in it."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def run_in_threads(functions: list[Callable[[], None]]) -> None:
    """Run them at the same time, and wait for all; the first error is raised."""
    errors: list[BaseException] = []

    def guarded(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(each,)) for each in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
        assert not thread.is_alive(), "it waits for good"
    if errors:
        raise errors[0]
