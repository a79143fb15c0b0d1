"""Shared objects that are ready to use: `group.share(Queue[int], "jobs")`.

They are written with what `import orcalike` offers, as a program's own classes are. Each is imported
when it is first used, and must have been by all members that use it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orcalike.objects.barriers import Barrier
    from orcalike.objects.counters import Counter, Maximum, Minimum
    from orcalike.objects.deques import Deque
    from orcalike.objects.dicts import Dict
    from orcalike.objects.events import Event
    from orcalike.objects.lists import List
    from orcalike.objects.locks import Lock, RLock
    from orcalike.objects.semaphores import BoundedSemaphore, Semaphore
    from orcalike.objects.sets import Set
    from orcalike.objects.value import Value

_MODULES = {
    "Barrier": "barriers",
    "BoundedSemaphore": "semaphores",
    "Counter": "counters",
    "Deque": "deques",
    "Dict": "dicts",
    "Event": "events",
    "List": "lists",
    "Lock": "locks",
    "Maximum": "counters",
    "Minimum": "counters",
    "RLock": "locks",
    "Semaphore": "semaphores",
    "Set": "sets",
    "Value": "value",
}

if not TYPE_CHECKING:  # a type checker would believe that every name is there

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
        globals()[name] = found = getattr(module, name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "Counter",
    "Deque",
    "Dict",
    "Event",
    "List",
    "Lock",
    "Maximum",
    "Minimum",
    "RLock",
    "Semaphore",
    "Set",
    "Value",
]
