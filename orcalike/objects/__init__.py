"""Shared objects that are ready to use: `group.share(Queue[int], "jobs")`.

They are written with what `import orcalike` offers (`language`), as a program's own classes are. Each is imported
when it is first used, and must have been by all members that use it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from orcalike.session.lazy_names import attributes as _lazy_attributes

if TYPE_CHECKING:
    from orcalike.objects.arrays import Array
    from orcalike.objects.barriers import Barrier
    from orcalike.objects.caches import Cache
    from orcalike.objects.conditions import Condition
    from orcalike.objects.counters import Counter, Maximum, Minimum
    from orcalike.objects.deques import Deque
    from orcalike.objects.dicts import Dict
    from orcalike.objects.elections import Election
    from orcalike.objects.events import Event
    from orcalike.objects.lists import List
    from orcalike.objects.locks import Lock, RLock
    from orcalike.objects.queues import LifoQueue, PriorityQueue, Queue, ShutDown
    from orcalike.objects.semaphores import BoundedSemaphore, Semaphore
    from orcalike.objects.sets import Set
    from orcalike.objects.topics import Subscription, Topic
    from orcalike.objects.value import Value

# Now, and not in the first operation that asks for its caller and keeps it: to import it takes long.
importlib.import_module("orcalike.runtime.moment")

_MODULES = {
    "Array": "orcalike.objects.arrays",
    "Barrier": "orcalike.objects.barriers",
    "BoundedSemaphore": "orcalike.objects.semaphores",
    "Cache": "orcalike.objects.caches",
    "Condition": "orcalike.objects.conditions",
    "Counter": "orcalike.objects.counters",
    "Deque": "orcalike.objects.deques",
    "Dict": "orcalike.objects.dicts",
    "Election": "orcalike.objects.elections",
    "Event": "orcalike.objects.events",
    "LifoQueue": "orcalike.objects.queues",
    "List": "orcalike.objects.lists",
    "Lock": "orcalike.objects.locks",
    "Maximum": "orcalike.objects.counters",
    "Minimum": "orcalike.objects.counters",
    "PriorityQueue": "orcalike.objects.queues",
    "Queue": "orcalike.objects.queues",
    "RLock": "orcalike.objects.locks",
    "Semaphore": "orcalike.objects.semaphores",
    "Set": "orcalike.objects.sets",
    "ShutDown": "orcalike.objects.queues",
    "Subscription": "orcalike.objects.topics",
    "Topic": "orcalike.objects.topics",
    "Value": "orcalike.objects.value",
}

if not TYPE_CHECKING:  # a type checker would believe that every name is there
    __getattr__ = _lazy_attributes(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Array",
    "Barrier",
    "BoundedSemaphore",
    "Cache",
    "Condition",
    "Counter",
    "Deque",
    "Dict",
    "Election",
    "Event",
    "LifoQueue",
    "List",
    "Lock",
    "Maximum",
    "Minimum",
    "PriorityQueue",
    "Queue",
    "RLock",
    "Semaphore",
    "Set",
    "ShutDown",
    "Subscription",
    "Topic",
    "Value",
]
