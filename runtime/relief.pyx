"""Relief: an operation runs for long where messages are received, and another thread goes on there.

A running operation cannot be moved, so what changes is the thread around it. From then on it is in
the situation of one in a pop-up thread: it has its object's mutex and its place in the order, what
comes for the object queues, and all else goes on. When it ends its thread hands in the outcome,
runs what has queued meanwhile, and leaves the core without touching it (`Relieved`).

That is possible where all that a message is about is done but for what mutexes keep together. It is
not in an object's `__init__`, in a hook, and in what a change of view has let run.

Operations run in other threads, too: in pop-up threads, and where a program's thread lets a mutex go.
These hold up their objects alone. `running` finds them all.
"""

from libc.stdint cimport int64_t, uint64_t

from orcalike.runtime.call cimport Call
from orcalike.runtime.dispatch cimport Runtime
from orcalike.runtime.invocation cimport Invocation
from orcalike.runtime.operation cimport Operation
from orcalike.runtime.replica cimport APPLYING, LOCKED, UNDECLARED, Replica
from orcalike.runtime.task cimport Task, note_pending, note_applied
from orcalike.transport.drivers.heartbeat cimport Heartbeat
from orcalike.transport.drivers.pump cimport Pump
from orcalike.transport.layers.pack cimport MESSAGES_MAX
from orcalike.transport.wire.message cimport Message


def watch_running(Runtime runtime not None, Heartbeat heartbeat not None, int wakeup):
    """Have an eventfd written to when what is dispatched here has run for long; -1: no more."""
    if wakeup < 0:
        heartbeat.watch_no_more(&runtime.budget.in_batch)
    else:
        heartbeat.watch_running(&runtime.budget.in_batch, &runtime.budget.batch_began, wakeup)


def receiving(Runtime runtime not None, Pump pump not None):
    """(the thread that receives, ns for which what it dispatches has run); None if nothing does."""
    if not runtime.budget.in_batch:
        return None
    return pump.inside, runtime.sender.driver.clock() - runtime.budget.batch_began


def running(Runtime runtime not None, Pump pump not None):
    """(what runs, whether any mutex is held); from any thread.

    What runs: (replica, operation or None, thread or None, what tells this run from the next) each.
    Of a read that runs in its caller's thread neither operation nor thread is known, and it is found
    only where something waits for it.
    """
    cdef Replica replica
    cdef Call call
    cdef list found = []
    cdef bint held = False
    for thread, (replica, title) in list(runtime.budget.hooks.items()):
        found.append((replica, Named(title), thread, title))
    for replica in runtime.replicas[1:]:
        if replica is None or replica.flags & (LOCKED | UNDECLARED) != LOCKED:
            continue
        held = True
        if replica.owner is NULL:
            continue
        if isinstance(replica.task, Call):
            call = replica.task
            if call.replicas[0] is replica and call.function is not None:
                found.append((replica, call.function, call.thread, (call, call.attempts)))
        elif replica.flags & APPLYING:
            operation = replica.operations[runtime.recent_code >> 1]
            found.append((replica, operation, pump.inside, runtime.budget.batch_began))
        elif replica.queue:
            found.append((replica, None, None, replica.queue[0]))
    return found, held


class Named:
    """What runs there, where it is no operation."""

    popup = False

    def __init__(self, title):
        self.title = title


def relieve(Runtime runtime not None, Pump pump not None):
    """Take the place of the thread that runs an operation here; False where that cannot be now.

    Where it is done `pump.go_on` comes next, on this thread.
    """
    cdef Message message = runtime.message
    cdef uint64_t dispatched = runtime.dispatched
    cdef Task task = runtime.submitted
    cdef Replica replica = None
    cdef Call call = None
    cdef object gone = None
    if (not runtime.budget.in_batch or message is None or pump.stopped or
            runtime.sender.driver is not pump or runtime.budget.aside):
        return False
    if task is None:
        if not 0 < runtime.recent < <unsigned int>len(runtime.replicas):
            return False
        replica = runtime.replicas[runtime.recent]
        if replica is None or not replica.flags & APPLYING:
            return False
        task = call = call_of(runtime, pump, replica, message)
    elif not task.placed:
        return False
    if message.source < 0 and message.index + 1 == message.count:
        gone = runtime.member_at(message.source)
    if not task.applied and task.held:
        note_pending(task)
    # All this may have let the other thread run. From here on nothing does.
    if runtime.dispatched != dispatched or not runtime.budget.in_batch or (
            runtime.submitted is not task if call is None
            else runtime.submitted is not None or not replica.flags & APPLYING):
        note_applied(task)
        return False
    if call is not None:
        replica.flags &= ~<unsigned int>APPLYING
        replica.task = call
        if call.invocation is not None:
            runtime.sender.issued[message.ticket & (MESSAGES_MAX - 1)] = NULL
    task.relieved = True
    runtime.submitted = None
    runtime.recent = 0
    runtime.budget.timed_until = 0
    runtime.budget.batch_began = runtime.sender.driver.clock()
    pump.take_place()
    if gone is not None:
        try:
            runtime.manager.left_already(gone)
        except BaseException as error:
            pump.fail(error)
    return True


cdef Call call_of(Runtime runtime, Pump pump, Replica replica, Message message):
    """What an operation would have been that runs straight from its message."""
    cdef Operation operation = replica.operations[runtime.recent_code >> 1]
    cdef Call call
    cdef Invocation invocation = None
    cdef void* issued = runtime.sender.issued[message.ticket & (MESSAGES_MAX - 1)]
    if issued is not NULL and message.source == runtime.position:
        invocation = <Invocation>issued
    call = runtime.call_of(message, replica, operation, runtime.recent_code, None, invocation)
    call.thread = pump.inside
    call.held = call.replicas
    call.began = runtime.budget.batch_began
    return call
