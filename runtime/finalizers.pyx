"""Finalizers that a collection of garbage runs in the midst of the core, or of an operation.

Any allocation may begin a collection, and that runs finalizers of whatever the program has let go. What
these call is no part of the operation that has allocated: it would run at this replica alone. So from the
beginning of a collection to its end the thread runs no operation: its calls are sent like others, and what
would wait, which would be for this thread itself, is refused.
"""

import gc

from orcalike.runtime.replica cimport Replica, in_finalizer, thread_slot
from orcalike.transport.drivers.deferral cimport is_held

cdef void** interrupted = NULL      # the slot of the thread that collects in the midst of something
cdef void* before = NULL            # what that thread ran
cdef list hidden = []               # the replicas whose operation that was
cdef void* no_slot = NULL           # what these name in the place of that thread's slot


def watch_finalizers():
    """Have it so from now on, in all threads."""
    if on_collection not in gc.callbacks:
        gc.callbacks.append(on_collection)


def on_collection(phase, info):
    """One of `gc.callbacks`; one collection runs at a time."""
    cdef void** slot = thread_slot()
    if phase == "start":
        if slot[0] is not NULL or is_held():
            hide(slot)
    elif interrupted is slot:
        show(slot)


cdef int hide(void** slot) except -1:
    """The thread runs no operation, until `show`."""
    global interrupted, before
    cdef Replica replica
    interrupted, before = slot, slot[0]
    if before is not NULL:
        replica = <Replica>before
        for replica in (replica, *getattr(replica.task, "replicas", ())):
            if replica.owner is slot:
                replica.owner = &no_slot
                hidden.append(replica)
    slot[0] = <void*>in_finalizer
    return 0


cdef int show(void** slot) except -1:
    """It goes on with what it ran."""
    global interrupted
    cdef Replica replica
    interrupted = NULL
    slot[0] = before
    for replica in hidden:
        replica.owner = slot
    hidden.clear()
    return 0
