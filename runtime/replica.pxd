"""Replicas: what a member knows of one shared object."""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from orcalike.runtime.invocation cimport Invoker

ctypedef PyObject* (*vectorcallfunc)(PyObject*, PyObject* const*, size_t, PyObject*) noexcept
ctypedef PyObject* (*endingfunc)(PyObject*, PyObject*) noexcept

cpdef enum:
    # Why a replica is not free to run the next invocation at once.
    LOCKED = 1          # an operation runs, or a task holds the object
    QUEUED = 2          # the lock queue is not empty
    WAITING = 4         # invocations or reads wait for their guard
    UNPACKED = 16       # a snapshot is due before the next write
    DROPPED = 32        # the object was ended
    UNDECLARED = 64     # its class is not declared here yet
    CLOSED = 128        # the group was left
    STRICT = 256        # each read is checked (ORCALIKE_CHECK=strict)
    SIGNALLED = 1024    # a signal's handler waits for the operation that the main thread runs
    INSISTED = 8192     # and Ctrl-C is to end that, if it has not ended a second later
    FAULTY = 4096       # this process has met a fault of its own: the object serves no more
    RECORDED = 512      # no operation runs inline: each is recorded (ORCALIKE_HISTORY), or run twice
    APPLYING = 2048     # the operation that runs is the message that is dispatched now

cpdef enum:
    # The bits of `ran`: the operations have those below, each its index.
    RAN_OTHER = 59      # any of the operations from this index on
    RAN_ENDED = 60      # `group.drop` has its place in the order: the object is compared no more
    RAN_VIEW = 61       # the state that came with a view
    RAN_MADE = 62
    RAN_ATOMIC = 63

cdef enum:
    # What may wait at one object: in its lock queue, or in its waiting list.
    TASKS_MAX = 65536
    BYTES_MAX = 8388608     # of arguments

cdef enum:
    READ = 1            # a trait of a method: it changes nothing


cdef class Replica:
    cdef unsigned int flags
    cdef void** owner               # the slot of the thread that holds the mutex, or NULL
    cdef readonly Invoker invoker   # its member's sender; `left.Left` once the group was left
    cdef readonly object object     # the shared object itself
    cdef readonly int number        # its place in the object table
    cdef readonly str name
    cdef readonly object info       # its ClassInfo; None if it is not declared here
    cdef readonly str class_name
    cdef readonly bytes digest      # of the class, as its creator knew it
    cdef public object arguments    # of its creation, encoded; None when it is made
    cdef readonly bytes arguments_digest
    cdef readonly int least         # smallest degree above 0 that its class gives a write; 0 for none
    cdef readonly int degree        # of its class's own; -1 where it is the group's
    cdef list operations            # by index
    cdef object queue               # deque of tasks: the lock queue
    cdef Py_ssize_t queue_bytes     # of the arguments of what is in it
    cdef bint full                  # it has reached its bound, and is not half empty since
    cdef dict waiting               # tasks whose guard was false, oldest first, as keys
    cdef Py_ssize_t waiting_bytes
    cdef Py_ssize_t waiting_peak    # the most that waited since the dict was made
    cdef dict readers               # local reads whose guard was false, by invocation
    cdef dict bonds                 # replica -> atomic functions that wait, or may, here and there
    cdef public list snapshots      # those that it is still to be packed for
    cdef public object pending      # its creation, or its state, that waits for its class
    # A `Task`, whose module cimports this one: what holds the mutex, where it has its own place in the order.
    cdef object task
    cdef readonly list alone        # this one, for a task that needs no other
    cdef object remains             # of an object that is the program's alone: a weak reference
    cdef bint changed               # a write has run since the waiting list was tried
    cdef public dict slow           # operation's name -> `account.Account`; None if none was slow
    cdef readonly bint in_use       # it was there before its member joined again, and has its state of then
    cdef public object rng         # (place, Random) of orcalike.random()
    cdef public uint64_t ran         # a bit for each operation since it was looked at (`digests`)
    cdef object audit               # what was looked at of its state (`audit.Audit`); None at first


    cdef int queue_up(self, task, Py_ssize_t size) except -1
    cdef int has_queued(self) except -1
    cdef object queue_head(self)
    cdef int shrunk(self, Py_ssize_t size) except -1


cdef class Method:
    cdef vectorcallfunc vectorcall  # `call_method`, as a call on an object finds it
    cdef vectorcallfunc call        # of the function
    cdef PyObject* code             # the function, which `call` gets; borrowed
    cdef unsigned int traits        # READ, and what else makes it more than a function to call
    cdef vectorcallfunc slow        # for what cannot run at once
    cdef endingfunc ended           # (replica, result): of a read that failed, or for whose end something waits


cdef Replica find(PyObject* object)
cdef int bind(Replica replica) except -1
cdef void** thread_slot() noexcept
cdef Replica in_finalizer       # what a thread's slot names while a collection runs in the midst of the core there
cdef int refuse_nested(object what, bint waits) except -1
cdef PyObject* call_method(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) noexcept
cdef PyObject* shared_for_this_thread(PyObject* object) noexcept


cdef inline uint64_t bit_of(unsigned int operation) noexcept:
    """The bit in `Replica.ran` that stands for an operation."""
    return <uint64_t>1 << (operation if operation < RAN_OTHER else RAN_OTHER)


cdef inline uint64_t interest_of(Replica replica) noexcept:
    """The bit that stands for an object in what messages are about."""
    return <uint64_t>1 << (replica.number & 63)


cdef inline void end(Replica replica) noexcept:
    """Let the mutex go; the caller sees whether `flags` says that a thread waits for it."""
    replica.flags &= ~<unsigned int>(LOCKED | APPLYING)
    replica.owner[0] = NULL
    replica.owner = NULL
