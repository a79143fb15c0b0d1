"""What an object of a group that was left still answers."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from orcalike.runtime.own_numbers import numbers_of_reads
from orcalike.runtime.raising import fresh
from orcalike.runtime.replica import dropped

from orcalike.runtime.invocation cimport Invocation, Invoker
from orcalike.runtime.local_reads cimport given_of, named_of, read_last_state
from orcalike.runtime.replica cimport DROPPED, FAULTY, Replica


cdef class Left(Invoker):
    """Answers for the objects of a group that was left: they show their last state, and calls raise.

    So does a read whose guard does not hold in that state.

    It is in the sender's place, which an object that the program keeps does not keep, nor its
    member.
    """

    def __init__(self, error, runtime):
        self.error = error              # GroupClosed
        self.fault = runtime.sender.failure
        self.rng, self.seed, self.position = runtime.rng, runtime.seed, runtime.position
        self.me, self.stamp = runtime.me, runtime.group_clock()

    cdef object invoke(self, object replica, object operation, PyObject* const* args,
                       Py_ssize_t count, PyObject* names, int64_t timeout, unsigned int wanted):
        self.refuse(<Replica>replica)

    cdef Invocation invoke_nowait(self, object replica, object operation, PyObject* const* args,
                                  Py_ssize_t count, PyObject* names, unsigned int wanted, bint awaited):
        self.refuse(<Replica>replica)

    cdef object read(self, object replica, object operation, PyObject* const* args,
                     Py_ssize_t count, PyObject* names, int64_t timeout):
        return self.read_nowait(replica, operation, args, count, names).take()

    cdef Invocation read_nowait(self, object replica, object operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names):
        cdef Invocation invocation = Invocation.__new__(Invocation)
        if (<Replica>replica).flags & (DROPPED | FAULTY):
            self.refuse(<Replica>replica)
        invocation.operation = operation
        invocation.replica = replica
        read_last_state(invocation, operation, <object>args[0], given_of(args + 1, count - 1),
                        named_of(args, count, names), self.error)
        return invocation

    def rng_of_reads(self):
        """As of a sender."""
        if self.rng is None:
            self.rng = numbers_of_reads(self.seed, self.position)
        return self.rng

    cdef int refuse(self, Replica replica) except -1:
        if replica.flags & FAULTY and self.fault is not None:
            raise fresh(self.fault)
        if replica.flags & DROPPED:
            raise dropped(replica)
        raise fresh(self.error)

    def invoke_atomic(self, atomic, args, named, wanted=0, awaited=False):
        """As of a sender; it raises."""
        raise fresh(self.error)

    def call_atomic(self, atomic, args, named, timeout, wanted=0):
        """As of a sender; it raises."""
        raise fresh(self.error)

    async def wait_for_room(self):
        """As of a sender; it raises."""
        raise fresh(self.error)
