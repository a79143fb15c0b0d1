"""What the operation that a thread runs may ask of its surroundings: `orcalike.now` and the like."""

from orcalike.runtime.call cimport Call
from orcalike.runtime.left cimport Left
from orcalike.runtime.dispatch cimport Runtime
from orcalike.runtime.replica cimport APPLYING, Replica, in_finalizer, thread_slot
from orcalike.runtime.sender cimport Sender
from orcalike.runtime.task cimport Task


def running_place():
    """(replica, seqno, index, stamp) of the operation that this thread runs; None outside.

    The seqno of a read is -1, and its stamp is the group's clock.
    """
    cdef Replica replica = replica_here()
    if replica is None:
        return None
    if isinstance(replica.invoker, Sender):
        return place_in(<Runtime>(<Sender>replica.invoker).runtime, replica)
    cdef Task task = write_of(replica)
    if task is not None:
        return replica, task.seqno, task.index, task.stamp
    return replica, -1, 0, (<Left>replica.invoker).stamp


def running_call():
    """(caller, seqno, index) of the operation that this thread runs; None outside.

    The caller is None in a hook; seqno and index are None in a read of this process.
    """
    cdef Replica replica = replica_here()
    if replica is None:
        return None
    if isinstance(replica.invoker, Sender):
        return call_in(<Runtime>(<Sender>replica.invoker).runtime, replica)
    cdef Task task = write_of(replica)
    if task is not None:
        return (<Call>task).sender, task.seqno, task.index
    return (<Left>replica.invoker).me, None, None


cdef tuple place_in(Runtime runtime, Replica replica):
    """`running_place` in a group."""
    cdef Task task = replica.task
    if task is not None and not task.is_read:
        return replica, task.seqno, task.index, task.stamp
    if task is None and replica.flags & APPLYING:
        return (replica, *runtime.place_of())
    return replica, -1, 0, runtime.group_clock()


cdef tuple call_in(Runtime runtime, Replica replica):
    """`running_call` in a group."""
    cdef Task task = replica.task
    if task is not None:
        if task.changes_nothing:
            return runtime.me, None, None
        return (<Call>task).sender, task.seqno, task.index
    if replica.flags & APPLYING:
        return (runtime.member_at(runtime.message.source), runtime.message.seqno,
                runtime.message.index)
    return runtime.me, None, None


cdef Replica replica_here():
    """The replica whose operation this thread runs; None outside of operations."""
    cdef void* running = thread_slot()[0]
    return None if running is NULL or running is <void*>in_finalizer else <Replica>running


cdef Task write_of(Replica replica):
    """The write that runs there though the group was left meanwhile; None if it is a read."""
    cdef Task task = replica.task
    return None if task is None or task.changes_nothing else task
