"""Whether the state of an object could be given to a joiner."""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from orcalike.runtime.marshal cimport Codec
from orcalike.runtime.replica cimport Replica

cdef extern from "Python.h":
    PyObject* type_of "(PyObject *)Py_TYPE"(PyObject*) noexcept

cdef enum:
    FIRST = 64              # writes of this member that are looked after one by one
    ONE_IN = 64             # of those that follow; a power of 2
    ATOMIC = 63             # the bit that stands for atomic functions, and for operations past it


cdef class Audit:
    cdef uint64_t operations    # a bit for each operation that was called
    cdef uint64_t writes        # of this member
    cdef uint64_t due           # when all is to be looked at again
    cdef type kind              # of the object
    cdef bint snaps             # its class has a `snapshot`
    cdef list doubtful          # values of types that were not met before


cdef inline uint64_t flag_of(unsigned int operation) noexcept:
    """The bit of an operation."""
    return <uint64_t>1 << min(operation, <unsigned int>ATOMIC)


cdef inline bint passed_over(Replica replica, unsigned int operation) noexcept:
    """Count a write of this member; whether its object is not looked at now. If it is: `refusal`."""
    cdef PyObject* audit = <PyObject*>replica.audit
    if replica.audit is None or <PyObject*>(<Audit>audit).kind is not type_of(<PyObject*>replica.object):
        return False                # it is counted with the first look
    (<Audit>audit).writes += 1
    if not (<Audit>audit).operations & flag_of(operation) or (<Audit>audit).writes >= (<Audit>audit).due:
        return False
    return (<Audit>audit).snaps or (<Audit>audit).writes > FIRST and (<Audit>audit).writes & (ONE_IN - 1) != 0


cdef unsigned int number_of(object operation) noexcept
cdef object refusal(Codec codec, Replica replica, object operation)
cpdef object why_not(Codec codec, Replica replica)
