"""CPython's own tests of what `threading` and `queue` offer, passed by what is named after it.

Twice each: shared in a group of one, and in a group of three whose replicas are compared.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from orcalike.objects.barriers import Barrier
from orcalike.objects.conditions import Condition
from orcalike.objects.events import Event
from orcalike.objects.locks import Lock, RLock
from orcalike.objects.queues import LifoQueue, PriorityQueue, Queue, ShutDown
from orcalike.objects.semaphores import BoundedSemaphore, Semaphore
from tests.unit.objects.members import Lab, members
from tests.unit.objects.standard import adapted

reason = "this interpreter comes without the package `test`"
lock_tests: Any = pytest.importorskip("test.lock_tests", reason=reason)
test_queue: Any = pytest.importorskip("test.test_queue", reason=reason)

PRIVATE = "it calls a private method of threading's own type"
MAXSIZE = "the bound of a queue is the same for good"
KEPT = "the group keeps the object as long as it is not dropped"

NEVER = {
    "LockTests": {"test_at_fork_reinit": PRIVATE, "test_weakref_deleted": KEPT},
    "RLockTests": {
        **dict.fromkeys(("test__is_owned", "test_recursion_count"), PRIVATE),
        "test_release_save_unacquired": PRIVATE,
        "test_weakref_deleted": KEPT,
    },
    "EventTests": {"test_at_fork_reinit": PRIVATE, "test_reset_internal_locks": PRIVATE},
    "SemaphoreTests": {},
    "BoundedSemaphoreTests": {},
    "BarrierTests": {"test_action": "a function does not travel"},
    "ConditionTests": {"test_acquire": "its lock is one of threading's own"},
    "QueueTest": {"test_shrinking_queue": MAXSIZE},
    "LifoQueueTest": {"test_shrinking_queue": MAXSIZE},
    "PriorityQueueTest": {"test_shrinking_queue": MAXSIZE},
}
"""Which tests cannot apply, by case and name, and why."""

ALONE, THREE = Lab([]), Lab([])


@pytest.fixture(scope="module", autouse=True)
def groups() -> Iterator[None]:
    """The groups that share what the tests make."""
    with members(1) as ALONE.groups, members(3) as THREE.groups:
        yield


def _maker(cls: type[Any], lab: Lab) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        return lab.share(cls, *args, **kwargs)

    return staticmethod(make)


def _cases(mode: str, lab: Lab) -> Iterator[tuple[str, Callable[..., Any]]]:
    """CPython's cases for the objects of one group."""
    for case, attributes in (
        (lock_tests.LockTests, {"locktype": Lock}),
        (lock_tests.RLockTests, {"locktype": RLock}),
        (lock_tests.EventTests, {"eventtype": Event}),
        (lock_tests.SemaphoreTests, {"semtype": Semaphore}),
        (lock_tests.BoundedSemaphoreTests, {"semtype": BoundedSemaphore}),
        (lock_tests.BarrierTests, {"barriertype": Barrier}),
        (lock_tests.ConditionTests, {"condtype": Condition, "locktype": Lock}),
    ):
        title = f"{mode}{case.__name__}"
        made = {name: _maker(cls, lab) for name, cls in attributes.items()}
        reasons = NEVER[case.__name__]
        yield title, adapted(case, title, lab, reasons, {}, __module__=__name__, **made)
    names = {"Queue": Queue, "LifoQueue": LifoQueue, "PriorityQueue": PriorityQueue}
    module = SimpleNamespace(
        **{name: _maker(cls, lab).__func__ for name, cls in names.items()},
        Empty=queue.Empty,
        Full=queue.Full,
        ShutDown=ShutDown,
    )
    for case in (test_queue.QueueTest, test_queue.LifoQueueTest, test_queue.PriorityQueueTest):
        title = f"{mode}{case.__name__}"
        reasons = NEVER[case.__name__]
        yield title, adapted(case, title, lab, reasons, {}, __module__=__name__, queue=module)


for _mode, _lab in {"Alone": ALONE, "Three": THREE}.items():
    globals().update(_cases(_mode, _lab))
