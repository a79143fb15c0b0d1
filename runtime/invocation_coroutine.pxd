"""The coroutine of an invocation, which `.aio(...)` returns."""

from orcalike.runtime.invocation cimport Invocation


cdef class InvocationCoroutine:
    cdef Invocation invocation      # None from when it is awaited on
    cdef object seconds             # its time limit; None for none
    cdef object steps               # its iterator, if a task has begun to run it

    cdef object begin(self)


cdef InvocationCoroutine coroutine_of(Invocation invocation, object seconds)
