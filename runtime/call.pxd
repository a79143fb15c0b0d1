"""Calls: operations and atomic functions at their places in the order, as tasks."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from orcalike.runtime.invocation cimport Invocation
from orcalike.runtime.operation cimport Operation
from orcalike.runtime.task cimport Task


cdef class Call(Task):
    cdef readonly object function   # an Operation or an Atomic; None until the class is known
    cdef Operation operation        # the function, if it is one
    cdef readonly uint32_t code     # of an operation: its index, twice, plus 1 where names follow
    cdef readonly bytes raw         # the arguments as they came; None once they are decoded
    cdef readonly tuple args
    cdef readonly dict named
    cdef readonly object sender     # the member that called; None for a hook, or a local read
    cdef readonly object source     # its incarnation, 0 for a hook; None for a local read
    cdef readonly uint64_t ticket
    cdef readonly Invocation invocation     # where the caller is here and wants to know
    cdef readonly object runtime    # a `calling.Calling`: `dispatch.Runtime`, whose module cimports this one
    cdef bint brief                 # its thread has a time limit, or an event loop: it runs no other task
    cdef bint on_loop               # an event loop stands still until it is over: it waits for no guard
    cdef bint waited                # its guard was false once
    cdef public bint departed       # its caller had left before it was delivered: it cannot wait
    cdef bint binds                 # it may wait for its guard at several objects
    cdef int64_t began              # when it began, where another thread took over
    cdef unsigned long thread      # that tests its guard, or runs it
    cdef uint64_t attempts     # how often it did

    cdef int is_about(self, runtime, function, uint32_t code, bytes raw, tuple args, dict named) except -1
    cpdef Call of(self, sender, uint64_t ticket, Invocation invocation)
    cpdef Call bind(self, list replicas)
    cdef Call for_reader(self, Invocation invocation, bint brief, bint on_loop)
    cpdef tuple arguments(self)
    cdef object apply(self, function)
    cdef int decode(self) except -1
    cdef object call(self)
    cdef object run_once(self, bint stays)
    cdef bint pops_up(self) except -1
    cdef int let_wait(self) except -1
    cdef int let_reader_wait(self) except -1
    cdef int waits_for(self, uint64_t interest) except -1
    cdef bint finds_room(self) except -1
    cdef int bind_together(self, int more) except -1
    cdef int over(self, object result, object error) except -1
    cdef object look_at_state(self)


cdef Call new_call(runtime, function, uint32_t code, bytes raw, tuple args, dict named)
cpdef bint is_fault(object error)
