"""Tasks: they wait for objects' mutexes, and run when they head all their lock queues (D04, D05).

An invocation of a free object runs straight from the receive buffer, in `dispatch`. Everything else
is a task, mostly a `call.Call`: it needs the mutex of one object, or of several (`@atomic`), and stands in the lock queue
of each that is not free. The thread that lets a mutex go runs what waited for it, first in first
out; a read that must come back soon has another thread do so (`Call.brief`). A task holds the
mutexes that it has while it waits for the rest, so the order of tasks is the same at each replica,
whatever was locked there.

A call whose guard is false goes to the object's waiting list. After each write these are tried,
oldest first, and from the oldest again after each that ran; then the reads that wait locally.

An atomic function that waits binds its objects: what it finds in one of them must not depend on how
far a replica is with the others. So a task that needs the mutex of one takes those of all that are
bound to it, and lets none go before all that waits has been tried.
"""

from collections import deque

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from cpython.dict cimport PyDict_Keys
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from orcalike.runtime.errors import NotSerializable

from orcalike.runtime.receipts cimport PendingApply
from orcalike.runtime.replica cimport LOCKED, QUEUED, UNDECLARED, UNPACKED, WAITING, Replica


@cython.freelist(16)
cdef class Task:
    """Something that needs the mutexes of `replicas`; subclasses say what, in `run`."""

    cpdef int run(self) except -1:
        """Runs with all mutexes held, and says whether it keeps them."""
        return OVER

    cdef int attempt(self) except -1:
        """Run if the guard allows it now; else WAITS."""
        return self.run()

    cdef int refuse(self, object error) except -1:
        """Ends it, since this process cannot use one of its objects, now or later."""
        self.held = []
        self.run()
        return 0

    cpdef int fail(self, object error) except -1:
        """Its outcome will not come here: tell the caller, if it is here."""
        return 0

    cdef int hand_on(self, Replica replica) except -1:
        """Lets a mutex go that it held; what waited for it runs."""
        return hand_on(replica)

    cpdef Task at(self, uint64_t seqno, uint32_t index, uint64_t stamp):
        """Give it its place in the order; returns the task."""
        self.seqno, self.index, self.stamp = seqno, index, stamp
        return self

    def submit_for(self, replicas):
        """Take these mutexes, or queue for them, and run when all are held."""
        self.replicas = replicas
        submit(self)

    def finished(self):
        """It is over, after `run` said that it keeps the mutexes."""
        finish(self)


cdef int submit(Task task) except -1:
    """Take the mutexes that are free, queue for the others, and run where none is missing."""
    cdef Replica replica
    for replica in task.replicas:
        if replica.flags & UNDECLARED:
            lost = (<object>replica.invoker).runtime.table.lost.get(replica.number)
            if lost is not None:
                never(task, NotSerializable(lost))
                return 0
    if task.changes_nothing:
        task.held = task.replicas
    else:
        task.held = bound_to(task.replicas)
        for replica in task.held:
            if replica.flags & UNPACKED:    # a joiner gets what it was before this task
                (<object>replica.invoker).runtime.donor.pack(replica)
    prepare_to_queue(task)
    take_or_queue(task)
    return 0


cdef int prepare_to_queue(Task task) except -1:
    """Make what queueing takes. That may let other threads run, and from the last look on nothing does."""
    cdef Replica replica
    cdef bint looks = True
    cdef bint noted = False
    while looks:
        looks = False
        for replica in task.held:
            if replica.flags & (LOCKED | QUEUED):
                if replica.queue is None:
                    replica.queue = deque()
                    looks = True
                if not noted:
                    note_pending(task)
                    noted = looks = True
    return 0


cdef int take_or_queue(Task task) except -1:
    """Take the mutexes that are free and queue for the others, in one step; run where none is missing."""
    cdef list held = task.held
    cdef Replica replica
    for replica in held:
        if replica.flags & (LOCKED | QUEUED):
            replica.queue_up(task, task.size)
            task.missing += 1
        else:
            replica.flags |= LOCKED
    task.placed = True
    if task.missing == 0:
        return finish(task) if task.run() == OVER else 0
    for replica in held:                # other threads may run from here on, and the task with them
        if replica.flags & QUEUED:
            replica.has_queued()
    return 0


def never(Task task, error):
    """A task of an object that this process cannot use, now or later."""
    task.refuse(error)


cdef int note_pending(Task task) except -1:
    """It has its place in the order, and is not applied yet."""
    cdef Replica replica
    if task.pending_apply is None and not task.changes_nothing:
        for replica in task.held:
            if replica.flags & UNDECLARED:
                return 0                # it belongs to the object's state, which waits as a whole
        task.pending_apply = replica.invoker.begin_pending()
    return 0


cdef int note_applied(Task task) except -1:
    """It is applied, and so is what it has let run."""
    cdef PendingApply pending = task.pending_apply
    task.applied = True
    if pending is not None:
        task.pending_apply = None
        pending.end()
    return 0


cdef list bound_to(list replicas):
    """These, and those that are bound to them, directly or not."""
    cdef Replica replica, other
    for replica in replicas:
        if replica.bonds:
            break
    else:
        return replicas
    found = list(replicas)
    for replica in found:               # which grows meanwhile
        for other in replica.bonds:
            if other not in found:
                found.append(other)
    return found


def bound_together(replica):
    """An object, and those that are bound to it, by number."""
    return sorted(bound_to([replica]), key=number_of)


def number_of(Replica replica):
    """A replica's place in the object table."""
    return replica.number


cdef int finish(Task task) except -1:
    """The task is over: try the waiting calls, unlock its mutexes, and run the tasks that waited for them."""
    cdef Replica replica
    cdef int progress = wake(task)
    note_applied(task)
    if progress != KEPT:
        for replica in task.held:
            task.hand_on(replica)
    return 0


cdef int hand_on(Replica replica) except -1:
    """Pass a held mutex to the head of the lock queue, and on, until nothing waits."""
    cdef Task task = None
    cdef Replica other
    cdef int progress
    while replica.queue:
        task = replica.queue_head()
        replica.shrunk(task.size)
        task.missing -= 1
        if task.missing or task.run() == KEPT:
            return 0                    # it holds the mutex now
        progress = wake(task)
        note_applied(task)
        if progress == KEPT:
            return 0                    # what it woke holds the mutex
        for other in task.held:
            if other is not replica:
                hand_on(other)
        task = replica.task = None      # what goes with it may run anything, and queue more
    replica.flags &= ~<unsigned int>LOCKED
    return 0


def holder_of(Replica replica not None):
    """The task that holds an object's mutex, if it has its own place in the order; else None."""
    return replica.task


def queued_at(Replica replica not None):
    """The tasks in an object's lock queue, first in first."""
    return list(replica.queue or ())


def empty_queue(Replica replica not None):
    """Take all tasks out of an object's lock queue; returns them."""
    tasks, replica.queue = list(replica.queue or ()), None
    replica.flags &= ~<unsigned int>QUEUED
    replica.queue_bytes = 0
    return tasks


def go_on(Replica replica):
    """Let the mutex go that `replica.hold` took."""
    replica.task = None
    replica.changed = False
    hand_on(replica)


cdef int wake_waiting(Task task, Replica replica) except -1:
    """A write of an object has run without a task, and its mutex is held: `task` tries the
    calls that wait there, and lets it go."""
    task.replicas = task.held = replica.alone
    replica.changed = True
    return finish(task)


cdef int wake(Task task) except -1:
    """After a write: try the calls that wait for their guards, oldest first (KEPT: one keeps the mutexes)."""
    cdef Replica replica
    cdef Task call
    cdef int progress = OVER
    while progress == OVER:
        progress = try_waiting(task, waiting_at(task.held))
    if progress == KEPT:
        return KEPT
    for replica in task.held:
        if replica.changed:
            replica.changed = False
            for invocation in PyDict_Keys(replica.readers):
                call = replica.readers.pop(invocation, None)
                if call is not None:    # else it was withdrawn meanwhile
                    call.attempt()
            if 4 * <Py_ssize_t>len(replica.waiting) < replica.waiting_peak:
                replica.waiting_peak = len(replica.waiting)
                replica.waiting = dict(replica.waiting)     # without the places of what has gone
            if not replica.waiting and not replica.readers:
                replica.flags &= ~<unsigned int>WAITING
        replica.task = None
    return OVER


cdef int try_waiting(Task task, list calls) except -1:
    """Try these, in their order, and from the first again after each that ran (WAITS: none can).

    OVER: an object has changed that had not, so others are to be tried too. What is over leaves the
    row at once, so a guard that holds for all that wait costs one look at each.
    """
    cdef Py_ssize_t count = 0 if calls is None else len(calls)
    cdef Py_ssize_t first = 0, before = -1, at = 0
    cdef Py_ssize_t changed
    cdef Py_ssize_t* after          # by place in the row: the next place
    cdef int progress
    cdef Task call
    if count == 0:
        return WAITS
    changed = changed_among(task.held)
    after = <Py_ssize_t*>PyMem_Malloc(count * sizeof(Py_ssize_t))
    if after is NULL:
        raise MemoryError
    try:
        for at in range(count):
            after[at] = at + 1
        at = 0
        while at < count:
            call = calls[at]
            progress = WAITS
            if call.waits:
                call.held = task.held
                if task.pending_apply is not None:
                    call.pending_apply = task.pending_apply.share()
                progress = call.attempt()
                if progress == KEPT:
                    return KEPT
                note_applied(call)
                if progress == OVER and changed_among(task.held) != changed:
                    return OVER
            if call.waits:
                before = at
            elif before < 0:
                first = after[at]
            else:
                after[before] = after[at]
            at = after[at]
            if progress == OVER:
                at, before = first, -1
        return WAITS
    finally:
        PyMem_Free(after)


cdef Py_ssize_t changed_among(list replicas) except -1:
    """How many of these objects have changed since the calls that wait there were tried."""
    cdef Replica replica
    cdef Py_ssize_t found = 0
    for replica in replicas:
        found += replica.changed
    return found


cdef list waiting_at(list replicas):
    """The calls that wait for their guards at those of the objects that have changed, oldest first; None if none do."""
    cdef Replica replica
    cdef dict found = None
    cdef bint mixed = False
    for replica in replicas:
        if replica.changed and replica.waiting:
            mixed = found is not None
            found = {**found, **replica.waiting} if mixed else replica.waiting
    if found is None:
        return None
    return sorted(found, key=place_in_order) if mixed else list(found)


def place_in_order(Task task):
    """What orders tasks."""
    return task.seqno, task.index
