"""Invocations: calls of operations that are under way, and what carries them out."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.drivers.driver cimport Waitable

cdef enum:
    GRACE = 1000000000              # ns that the answer to a withdrawal is waited for, at the least

cdef enum Outcome:
    UNDER_WAY = 0
    RESULT = 1
    ERROR = 2


cdef class Unasked:
    cdef object operation
    cdef object error
    cdef bint asked


cdef class Invocation(Waitable):
    cdef Invoker invoker            # what knows it by its ticket; None if nothing does
    cdef readonly uint64_t ticket   # this member's own count of its messages
    cdef readonly object operation  # an Operation, or the name of what the group does
    cdef readonly object replica    # of the object that it is for, or None: a `Replica`, whose module cimports this one
    cdef int64_t sent_at            # ns, by the driver's clock; 0 if it was not sent
    cdef Outcome outcome
    cdef object value               # the result, or the exception
    cdef Unasked unasked            # what logs its failure; None if it has not failed, or a caller knows
    cdef bint abandoned             # its caller knows that it has no outcome
    cdef unsigned int wanted        # how many members are to have applied it before it is done
    cdef readonly str withdrawn     # why its withdrawal was asked for; None if it was not
    cdef list waiters               # futures of the coroutines that await it

    cdef int succeed(self, object result) except -1
    cdef int fail(self, object error) except -1
    cdef int settle(self) except -1
    cdef object take(self)
    cdef int ask(self) except -1
    cdef bint renew(self) noexcept


cdef class Invoker:
    """What carries invocations out: a member's `sender.Sender`, or `left.Left` in its place."""
    cdef Invocation last            # that which was made last and not waited for, until it is done; or None
    cdef const void** order         # -> `Core.order` of the stack: what reads look at
    cdef readonly uint64_t reads_slow   # reads that could not run at once
    cdef public object no_outcomes  # why none comes to this process, a forked child; None in all others
    cdef public bint watching       # coroutines that wait long will be noticed
    cdef int watch(self) except -1
    cdef int forget(self, Invocation invocation) noexcept
    cdef object invoke(self, object replica, object operation, PyObject* const* args,
                       Py_ssize_t count, PyObject* names, int64_t timeout, unsigned int wanted)
    cdef Invocation invoke_nowait(self, object replica, object operation, PyObject* const* args,
                                  Py_ssize_t count, PyObject* names, unsigned int wanted, bint awaited)
    cdef object read(self, object replica, object operation, PyObject* const* args,
                     Py_ssize_t count, PyObject* names, int64_t timeout)
    cdef Invocation read_nowait(self, object replica, object operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names)
    cdef object await_outcome(self, Invocation invocation, int64_t timeout, bint withdraw)
    cdef int release(self, object replica) except -1
    cdef int queue_full(self, object replica) except -1
    cdef int queue_has_room(self, object replica) except -1
    cdef int watch_threads(self) except -1
    cdef int post_call(self, object replica, object operation, tuple args) except -1
    cdef object begin_pending(self)
    cdef int let_go_on(self, object source, bint writes_others) except -1
    cdef int begin_await(self, Invocation invocation) except -1
    cdef int end_await(self, Invocation invocation) except -1
    cpdef bint withdraw(self, Invocation invocation, str why)


cdef int64_t nanoseconds(object seconds) except -1
