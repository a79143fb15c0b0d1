"""What the operation that a thread runs may ask of its surroundings: `orcalike.now` and the like."""

from orcalike.runtime.caller cimport Left
from orcalike.runtime.dispatch cimport Runtime
from orcalike.runtime.replica cimport Replica, thread_slot
from orcalike.runtime.task cimport Call, Task


def running_place():
    """(replica, seqno, index, stamp) of the operation that this thread runs; None outside."""
    cdef void** slot = thread_slot()
    cdef Replica replica
    cdef Task task
    if slot[0] is NULL:
        return None
    replica = <Replica>slot[0]
    if isinstance(replica.invoker, Runtime):
        return (<Runtime>replica.invoker).now_place()
    task = replica.task                 # the group was left meanwhile
    if task is not None and not task.changes_nothing:
        return replica, task.seqno, task.index, task.stamp
    return replica, -1, 0, (<Left>replica.invoker).stamp


def running_call():
    """(caller, seqno, index) of the operation that this thread runs, as `Runtime.call_now`; None outside."""
    cdef void** slot = thread_slot()
    cdef Replica replica
    cdef Task task
    if slot[0] is NULL:
        return None
    replica = <Replica>slot[0]
    if isinstance(replica.invoker, Runtime):
        return (<Runtime>replica.invoker).call_now()
    task = replica.task                 # the group was left meanwhile
    if task is not None and not task.changes_nothing:
        return (<Call>task).sender, task.seqno, task.index
    return (<Left>replica.invoker).me, None, None
