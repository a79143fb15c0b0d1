"""Replicas: what a member knows of one shared object (active messages 2 and 3; D02 to D05, D11).

A shared object stays an instance of its own class, and nothing is added to it: a table finds the
replica by the object's address. An object that is not in the table is a plain Python object.

The mutex of a replica is a bit in `flags`; to hold it is to have set the bit under the
interpreter lock. While nothing but a passing reader wants the object, taking and letting go cost a
test and two stores. Each thread has a slot that names the replica whose operation it runs: so an
operation's calls of its own object are plain calls, and those of others can be refused. A call begins
here (`call_method`): beside the table and the slot, so that a read of a free object is one function.
"""

import weakref
from collections import deque

from orcalike.runtime.errors import NestedWrite, ObjectDropped
from orcalike.runtime.invocation import name_of

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t, uintptr_t
from libc.stdlib cimport calloc, free

from orcalike.runtime.event_loops cimport refuse_loop
from orcalike.runtime.invocation cimport Invoker
from orcalike.transport.drivers.deferral cimport RUNS, RUNS_NOTHING, RUNS_STILL, ask_also
from orcalike.transport.drivers.look cimport ring_is_stale

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t) noexcept

cdef extern from *:
    """
    static __thread void *orcalike_running;
    static void **orcalike_slot(void) { return &orcalike_running; }
    """
    void** orcalike_slot() noexcept nogil


# The table: open addressing, linear probing, a power of two of slots, at most half of them taken.
cdef struct Entry:
    PyObject* object        # borrowed: the replica keeps it, or a weak reference cleans up
    PyObject* replica       # owned

cdef Entry* table = <Entry*>calloc(64, sizeof(Entry))
cdef Py_ssize_t mask = 63
cdef Py_ssize_t taken = 0


cdef inline Py_ssize_t home(PyObject* object) noexcept:
    return <Py_ssize_t>((<uintptr_t>object * 0x9E3779B97F4A7C15u) >> 20) & mask


cdef inline PyObject* lookup(PyObject* object) noexcept:
    cdef Py_ssize_t i = home(object)
    while table[i].object is not NULL:
        if table[i].object is object:
            return table[i].replica
        i = (i + 1) & mask
    return NULL


cdef Replica find(PyObject* object):
    """The replica of a shared object; None for any other object."""
    cdef PyObject* replica = lookup(object)
    return <Replica>replica if replica is not NULL else None


cdef void insert(PyObject* object, PyObject* replica) noexcept:
    cdef Py_ssize_t i = home(object)
    while table[i].object is not NULL:
        i = (i + 1) & mask
    table[i].object = object
    table[i].replica = replica


cdef int grow() except -1:
    global table, mask
    cdef Entry* old = table
    cdef Py_ssize_t size = mask + 1
    cdef Py_ssize_t i
    table = <Entry*>calloc(2 * size, sizeof(Entry))
    if table is NULL:
        table = old
        raise MemoryError
    mask = 2 * size - 1
    for i in range(size):
        if old[i].object is not NULL:
            insert(old[i].object, old[i].replica)
    free(old)
    return 0


cdef int bind(Replica replica) except -1:
    """Make the replica's object known as shared."""
    global taken
    if 2 * (taken + 1) > mask:
        grow()
    taken += 1
    Py_INCREF(replica)
    insert(<PyObject*>replica.object, <PyObject*>replica)
    return 0


cdef int unbind(uintptr_t address) except -1:
    """The object at `address` is gone: take its entry out, and close the gap."""
    global taken
    cdef Py_ssize_t i = home(<PyObject*>address)
    cdef Py_ssize_t j, ideal
    while table[i].object is not <PyObject*>address:
        if table[i].object is NULL:
            return 0
        i = (i + 1) & mask
    replica = <object>table[i].replica
    Py_DECREF(replica)
    taken -= 1
    table[i].object = NULL
    j = (i + 1) & mask
    while table[j].object is not NULL:
        ideal = home(table[j].object)
        if ((j - ideal) & mask) >= ((j - i) & mask):
            table[i] = table[j]
            table[j].object = NULL
            i = j
        j = (j + 1) & mask
    return 0


cdef void** thread_slot() noexcept:
    """This thread's slot: the replica whose operation it runs, or NULL."""
    return orcalike_slot()


cdef int what_runs(bint insists) noexcept:
    """Whether this thread runs an operation, and Ctrl-C waits for that; the end of a read is made known."""
    cdef void** slot = orcalike_slot()
    cdef unsigned int before
    if slot[0] is NULL:
        return RUNS_NOTHING
    before = (<Replica>slot[0]).flags
    (<Replica>slot[0]).flags = before | SIGNALLED | (INSISTED if insists else 0)
    return RUNS_STILL if before & INSISTED else RUNS


ask_also(what_runs)


cdef class Method:
    """What is called on an object. A read of a free object runs here, all else through `slow` or `ended`."""


cdef PyObject* call_method(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) noexcept:
    """`object.method(...)`: the object is the first argument.

    It deals in bare pointers, so that an exception passes through as the function left it, and nothing is
    counted on the way of a read. What is seldom needed is in other functions: this one keeps few registers.
    """
    cdef PyObject* found
    cdef PyObject* result
    cdef const void* order
    cdef void** slot
    if (<Method>self).traits != READ or PyVectorcall_NARGS(flags) == 0:
        return (<Method>self).slow(self, args, flags, names)
    found = lookup(args[0])
    if found is NULL:
        return (<Method>self).call((<Method>self).code, args, flags, names)
    slot = orcalike_slot()
    if (<Replica>found).flags or slot[0] is not NULL:
        if (<Replica>found).owner is slot:
            return (<Method>self).call((<Method>self).code, args, flags, names)
        return (<Method>self).slow(self, args, flags, names)
    order = (<Replica>found).invoker.order[0]
    if order is not NULL and ring_is_stale(order):
        return (<Method>self).slow(self, args, flags, names)    # what others have written is applied first
    (<Replica>found).flags = LOCKED
    (<Replica>found).owner = slot
    slot[0] = found
    result = (<Method>self).call((<Method>self).code, args, flags, names)
    end(<Replica>found)
    if result is NULL or (<Replica>found).flags:
        return (<Method>self).ended(found, result)
    return result


cdef PyObject* shared_for_this_thread(PyObject* object) noexcept:
    """The replica of an object, borrowed; NULL where a call is a plain call, as in `call_method`."""
    cdef PyObject* found = lookup(object)
    return NULL if found is NULL or (<Replica>found).owner is orcalike_slot() else found


# Objects that a group has left and whose class allows no weak reference: kept for good.
_kept = []


cdef class Replica:
    """What a member knows of one shared object."""

    def __cinit__(self):
        self.waiting = {}
        self.readers = {}
        self.bonds = {}
        self.alone = [self]
        self.degree = -1

    def __init__(self, Invoker invoker, int number, str name, str class_name, bytes digest,
                 arguments, bytes arguments_digest, int least):
        self.invoker = invoker
        self.least = least
        self.number = number
        self.name = name
        self.class_name = class_name
        self.digest = digest
        self.arguments = arguments
        self.arguments_digest = arguments_digest

    def attach(self, object, info):
        """Give the replica its object, of a class that is declared here."""
        self.object = object
        self.info = info
        self.degree = info.degree
        self.operations = list(info.operations)
        bind(self)

    def detach(self):
        """Take the object away again: it is plain from here on."""
        unbind(<uintptr_t><PyObject*>self.object)
        self.object = None

    def promote(self, operation):
        """Have an operation run in pop-up threads at this replica."""
        self.operations[operation.index] = operation.as_popup()

    def demote(self, operation):
        """Have an operation that was promoted run where messages are received again."""
        self.operations[operation.index] = operation.inline

    @property
    def seed(self):
        """The seed of its group."""
        return self.invoker.seed

    @property
    def rng_of_reads(self):
        """What `orcalike.random` gives to reads in this process."""
        return self.invoker.rng_of_reads()

    def hold(self, unsigned int why):
        """Lock for good, or until `hand_on`: nothing runs, what comes is queued."""
        self.flags |= LOCKED | why

    def mark(self, unsigned int why):
        """Set a flag."""
        self.flags |= why

    def unmark(self, unsigned int why):
        """Clear a flag."""
        self.flags &= ~why

    def has(self, unsigned int flags):
        """Whether one of these flags is set."""
        return bool(self.flags & flags)

    cdef int queue_up(self, task, Py_ssize_t size) except -1:
        """Put a task at the end of the lock queue, which there is; `has_queued` comes next."""
        self.queue.append(task)
        self.queue_bytes += size
        self.flags |= QUEUED
        return 0

    cdef int has_queued(self) except -1:
        """Something waits for the mutex."""
        self.invoker.watch_threads()
        if not self.full and self.queue and (
                self.queue_bytes >= BYTES_MAX or len(self.queue) >= TASKS_MAX):
            self.full = True
            self.invoker.queue_full(self)
        return 0

    cdef object queue_head(self):
        """The first task of the lock queue, which is there no longer."""
        cdef object task = self.queue.popleft()
        if not self.queue:
            self.flags &= ~<unsigned int>QUEUED
        return task

    cdef int shrunk(self, Py_ssize_t size) except -1:
        """So many bytes have left the lock queue, with their task."""
        self.queue_bytes -= size
        if self.full and self.queue_bytes <= BYTES_MAX // 2 and len(self.queue) <= TASKS_MAX // 2:
            self.full = False
            self.invoker.queue_has_room(self)
        return 0

    def withdraw_read(self, invocation):
        """A read of this process shall not run; whether it waited here, and is out.

        If it does not, a thread tries its guard, or runs it: that one sees to the rest.
        """
        if self.readers.pop(invocation, None) is not None:
            return True
        for read in self.queue or ():
            if getattr(read, "invocation", None) is invocation:
                self.queue.remove(read)
                if not self.queue:
                    self.flags &= ~<unsigned int>QUEUED
                if self.full:
                    self.shrunk(0)
                return True
        return False

    def fail_reads(self, error):
        """No read that waits here for its guard will run."""
        readers, self.readers = self.readers, {}
        for read in readers.values():
            read.fail(error)

    def renew(self, int number, arguments_digest, int least, object shared):
        """The member joins again, and keeps the object: its state is to come.

        Of what was under way only this process's own reads go on, and whatever runs right now.
        """
        cdef bint runs = self.owner is not NULL or self.task is not None
        self.number, self.arguments_digest, self.least = number, arguments_digest, least
        self.arguments = None
        if self.object is None:         # it was ended here, as the group did not
            self.object, self.remains = shared, None
        self.queue = deque([task for task in self.queue or () if task.is_read])
        self.waiting, self.readers, self.bonds = {}, {}, {}
        self.queue_bytes = self.waiting_bytes = 0       # reads have no size
        self.full = False
        self.snapshots = self.pending = self.rng = None
        self.changed = False
        self.in_use = True
        self.flags = self.flags & (STRICT | RECORDED | SIGNALLED) | (LOCKED if runs else 0)
        if self.queue:
            self.flags |= QUEUED

    def lose(self):
        """The group that this member has joined again does not have the object, which has no number there."""
        self.number = 0
        self.flags |= DROPPED
        if self.owner is NULL and self.task is None:
            self.release()

    def renewed(self):
        """Its state is the group's again: what runs from here on runs on that."""
        self.in_use = False

    def let_go(self, Invoker left not None, error):
        """The group was left, which `error` says: the object's life is the program's business from here on.

        `left` answers in the sender's place. An object that the program keeps does not keep the
        runtime, and with it the member: the calls that wait or queue here never run, and go.
        """
        queue, self.queue = self.queue, None
        self.flags &= ~<unsigned int>QUEUED
        if self.invoker.no_outcomes is None:
            for task in queue or ():
                task.fail(error)
        self.invoker = left
        self.waiting, self.readers, self.bonds = {}, {}, {}
        self.snapshots = self.pending = None
        if self.flags & DROPPED:
            return                      # it was ended before
        # An operation that has not ended yet ends as ever.
        self.flags = CLOSED | self.flags & (FAULTY | LOCKED | APPLYING)
        if self.object is not None and not self.release():
            _kept.append(self.object)
            self.object = None

    def release(self):
        """The object lives as long as the program refers to it; False where its class forbids that."""
        address = <uintptr_t><PyObject*>self.object
        try:
            self.remains = weakref.ref(self.object, lambda _: unbind(address))
        except TypeError:
            return False
        self.object = None
        return True

    def __repr__(self):
        return f"<Replica {self.number} of {self.name!r}: {self.class_name}>"


def dropped(Replica replica):
    """What calls of an object that was ended raise."""
    if replica.number:
        return ObjectDropped(f"{replica.name!r} was ended with group.drop")
    return ObjectDropped(f"{replica.name!r} is not in the group that this process has joined again: it was ended with "
                         "group.drop meanwhile, or the last process that had it has left")


def runs_here(Replica replica):
    """Whether this thread runs an operation of the replica."""
    return replica.owner is thread_slot()


def replica_of(object):
    """The replica of a shared object; None for any other object."""
    return find(<PyObject*>object)


cdef Replica in_finalizer = Replica.__new__(Replica)


cdef int refuse_nested(object what, bint waits) except -1:
    """Raise NestedWrite if this thread runs an operation: of another object, that is.

    So it does where a finalizer runs in the midst of one, or of the core, if the call `waits`: that would be for
    this thread itself.
    """
    cdef void* running = thread_slot()[0]
    if running is <void*>in_finalizer:
        if waits:
            raise NestedWrite(f"{name_of(what)} was called by a finalizer, which a collection of garbage ran in the "
                              "midst of an operation or of orcalike: it cannot wait there; use nowait, or "
                              "have a thread call it")
    elif running is not NULL:
        name = name_of(what)
        raise NestedWrite(f"{name} was called from inside an operation of another object, or an atomic function "
                          "that was not given its object: pass the value as an argument, or declare an "
                          "@atomic function, which is given each of its objects as an argument of its own")
    return 0


def refuse_inside(what):
    """Raise NestedWrite if this thread runs an operation."""
    if thread_slot()[0] is not NULL:
        raise NestedWrite(f"{what} was used inside an operation")


def refuse_to_wait(what):
    """Raise an error if this thread may not wait: in an operation, or on a running event loop."""
    refuse_inside(what)
    refuse_loop(what)
