"""The coroutine of an invocation, which `.aio(...)` returns."""

from orcalike.runtime.invocation cimport Invocation


cdef class InvocationCoroutine:
    cdef Invocation invocation      # None from when it is awaited on, or if it is not sent yet
    cdef object unsent              # what makes the coroutine that sends it, until then; None if there was room
    cdef object operation           # of one that is awaited, or not sent yet
    cdef object seconds             # its time limit; None for none
    cdef object steps               # its iterator, if a task has begun to run it

    cdef object begin(self)
    cdef object begin_unsent(self)


cdef InvocationCoroutine coroutine_of(Invocation invocation, object seconds)
