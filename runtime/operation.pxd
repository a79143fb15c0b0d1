"""Operations: the descriptors that stand in a shared class."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from orcalike.runtime.invocation cimport Invocation
from orcalike.runtime.invocation_coroutine cimport InvocationCoroutine
from orcalike.runtime.replica cimport Method, Replica, vectorcallfunc

cdef enum:
    # What makes an operation more than a function to call, beside READ.
    GUARDED = 2
    POPUP = 4
    UNDO = 8
    LOOKS = 16          # its class has invariants

    ARGS_MAX = 8        # arguments that are passed in an array on the stack
    NAMES_MAX = 64      # ways to name arguments that are kept of one operation


cdef class Operation(Method):
    cdef readonly object function   # which `code` is borrowed from
    cdef readonly object guard
    cdef Py_ssize_t required        # positional arguments, without self
    cdef Py_ssize_t accepts         # the most of them, -1 for any number
    cdef bint keywords              # some argument without default can be given by name only
    cdef readonly str name
    cdef readonly object resilience
    cdef public int degree          # its own, or its class's; -1 where it is the group's
    cdef public int index
    cdef public object info
    cdef readonly Operation inline  # of one that runs in pop-up threads for a while: what it is else

    cdef dict orders                # names of a call's arguments -> by how many have none, `order_of`; or None

    cdef Py_ssize_t put_in_place(self, PyObject* const* args, Py_ssize_t count, PyObject* names,
                                 PyObject** placed) except -2

    cdef inline bint fits(self, Py_ssize_t count) noexcept:
        """Whether that many positional arguments make a call."""
        return (self.required <= count and (count <= self.accepts or self.accepts < 0)
                and not self.keywords)


cdef int test_guard(Operation operation, Replica replica, PyObject* const* args, Py_ssize_t count) noexcept
cdef object caught()


cdef class BoundOperation:
    cdef vectorcallfunc vectorcall  # `call_bound`
    cdef object object
    cdef Operation operation
    cdef int64_t timeout
    cdef unsigned int stable        # how many members are to have applied it; 0 if it is not asked for

    cdef InvocationCoroutine limited(self, Invocation invocation)


cdef unsigned int members_of(object stable) except? 0xFFFFFFFF
cdef object saved_states(list objects)
