"""What the operation that a thread runs may ask of its surroundings: `orcalike.now` and the like."""

from orcalike.runtime.call cimport Call
from orcalike.runtime.left cimport Left
from orcalike.runtime.dispatch cimport Runtime
from orcalike.runtime.replica cimport Replica, thread_slot
from orcalike.runtime.task cimport Task


def running_place():
    """(replica, seqno, index, stamp) of the operation that this thread runs; None outside."""
    cdef Replica replica = replica_here()
    if replica is None:
        return None
    if isinstance(replica.invoker, Runtime):
        return (<Runtime>replica.invoker).now_place()
    cdef Task task = write_of(replica)
    if task is not None:
        return replica, task.seqno, task.index, task.stamp
    return replica, -1, 0, (<Left>replica.invoker).stamp


def running_call():
    """(caller, seqno, index) of the operation that this thread runs, as `Runtime.call_now`; None outside."""
    cdef Replica replica = replica_here()
    if replica is None:
        return None
    if isinstance(replica.invoker, Runtime):
        return (<Runtime>replica.invoker).call_now()
    cdef Task task = write_of(replica)
    if task is not None:
        return (<Call>task).sender, task.seqno, task.index
    return (<Left>replica.invoker).me, None, None


cdef Replica replica_here():
    """The replica whose operation this thread runs; None outside of operations."""
    cdef void** slot = thread_slot()
    return None if slot[0] is NULL else <Replica>slot[0]


cdef Task write_of(Replica replica):
    """The write that runs there though the group was left meanwhile; None if it is a read."""
    cdef Task task = replica.task
    return None if task is None or task.changes_nothing else task
