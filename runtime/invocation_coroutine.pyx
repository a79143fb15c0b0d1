"""The coroutine of an invocation, which `.aio(...)` returns, whether there was room to send it at once or not.

A task that awaits it, and finds the outcome there, gets it without a generator in between.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

cdef extern from "Python.h":
    int PyErr_WarnEx(PyObject*, const char*, Py_ssize_t) except -1
    int Py_IsInitialized() noexcept     # not any more while the interpreter ends
    int PyIter_Send(PyObject*, PyObject*, PyObject**) except -1
    enum:
        PYGEN_RETURN
        PYGEN_NEXT
    ctypedef struct PyTypeObject:
        pass

cdef extern from "_sending.h":
    ctypedef int (*orcalike_send)(PyObject*, PyObject*, PyObject**) except -1
    void orcalike_enable_sending(PyTypeObject*, orcalike_send) noexcept

from orcalike.runtime.invocation import name_of, unanswered
from orcalike.runtime.event_loops cimport cancelled_error, is_turn_of_others
from orcalike.runtime.invocation cimport GRACE, RESULT, UNDER_WAY, Invocation
from orcalike.transport.drivers.deferral cimport drop_later, hold


@cython.final
@cython.freelist(64)
cdef class InvocationCoroutine:
    """What `.aio(...)` returns: a coroutine that waits for an invocation, which was sent already if there was room.

    It has what `collections.abc.Coroutine` asks for, so that `asyncio.create_task` and
    `TaskGroup.create_task` take it. If it is cancelled, also before it has begun to run, the
    invocation is withdrawn. A coroutine that awaits it waits for the invocation itself.
    """

    def __init__(self, Invocation invocation not None):
        self.invocation = invocation

    cdef object begin(self):
        """The iterator that waits for the outcome; once."""
        invocation, self.invocation = self.invocation, None
        if invocation is None:
            return self.begin_unsent()
        self.operation = invocation.operation
        if self.seconds is None:
            return invocation.__await__()
        return within(invocation, self.seconds).__await__()

    cdef object begin_unsent(self):
        """The same of a call that was not sent yet."""
        unsent, self.unsent = self.unsent, None
        if unsent is None:
            raise RuntimeError("cannot reuse already awaited coroutine")
        return unsent().__await__()

    def __await__(self):
        if self.invocation is None and self.unsent is None:
            self.begin()                # raises
        return self

    def __iter__(self):
        """As an iterator has it: another class's `__await__` may be `yield from` this one's."""
        return self

    def __next__(self):
        return self.send(None)

    def send(self, value):
        """Run it up to where it waits; StopIteration has the outcome."""
        if self.steps is None:
            self.steps = self.begin()
        return self.steps.send(value)

    def throw(self, *error):
        """Raise an error where it waits; a cancellation withdraws the invocation."""
        cdef Invocation invocation = self.invocation
        if self.steps is None:
            self.steps = self.begin()
            kind = error[0] if isinstance(error[0], type) else type(error[0])
            cancelled = cancelled_error()
            if invocation is not None and cancelled is not None and issubclass(kind, cancelled):
                invocation.cancel()
        return self.steps.throw(*error)

    def close(self):
        """It will not run any more; the invocation goes on, if it was sent."""
        self.invocation = self.unsent = None
        if self.steps is not None:
            self.steps.close()

    def __dealloc__(self):
        if (self.invocation is not None or self.unsent is not None) and Py_IsInitialized():
            hold()                      # what a signal's handler raised in here would be lost
            try:
                warn_of(self)
            finally:
                drop_later()

    @property
    def __name__(self):
        return self.__qualname__.rpartition(".")[2]

    @property
    def __qualname__(self):
        return name_of(self.operation if self.invocation is None else self.invocation.operation)

    def __repr__(self):
        return f"<coroutine {self.__qualname__}>"


cdef int send_to(PyObject* coroutine, PyObject* value, PyObject** result) except -1:
    """Run a coroutine up to where it waits, or to its end if the outcome is here; says which."""
    cdef InvocationCoroutine it = <InvocationCoroutine>coroutine
    cdef Invocation invocation = it.invocation
    cdef bint is_over
    if it.steps is None:
        if invocation is not None and it.seconds is None and invocation.outcome != UNDER_WAY:
            if is_turn_of_others(invocation.sent_at):
                outcome, is_over = None, False      # as a bare `yield`
            else:
                it.invocation, is_over = None, True
                outcome = invocation.value if invocation.outcome == RESULT else raise_in_coroutine(invocation)
            Py_INCREF(outcome)
            result[0] = <PyObject*>outcome
            return PYGEN_RETURN if is_over else PYGEN_NEXT
        it.steps = it.begin()
    return PyIter_Send(<PyObject*>it.steps, value, result)


orcalike_enable_sending(<PyTypeObject*>InvocationCoroutine, send_to)


cdef object raise_in_coroutine(Invocation invocation):
    """Raise its failure where a coroutine ends: a StopIteration would be taken for its result (PEP 479)."""
    try:
        return invocation.take()
    except StopIteration as error:
        raise RuntimeError("coroutine raised StopIteration") from error


cdef InvocationCoroutine coroutine_of(Invocation invocation, object seconds):
    """A coroutine for the outcome, within a time limit in seconds if there is one."""
    cdef InvocationCoroutine made = InvocationCoroutine.__new__(InvocationCoroutine)
    made.invocation = invocation
    made.seconds = seconds
    return made


def unsent_coroutine(operation, begin):
    """The coroutine of a call for which there is no room: `begin()` makes that which sends it, and awaits the outcome."""
    cdef InvocationCoroutine made = InvocationCoroutine.__new__(InvocationCoroutine)
    made.operation = operation
    made.unsent = begin
    return made


cdef int warn_of(InvocationCoroutine coroutine) except -1:
    """A coroutine has ended that did not run."""
    what = ("there was no room for the call, and it was not sent" if coroutine.invocation is None
            else "the call was sent, and nothing waits for its outcome")
    PyErr_WarnEx(<PyObject*>RuntimeWarning,
                 f"coroutine {coroutine.__qualname__!r} was never awaited: {what}".encode(), 1)
    return 0


async def within(Invocation invocation, seconds):
    """Await an outcome for that long, then its withdrawal."""
    import asyncio                          # not at the top: only coroutines need it

    waiting = asyncio.ensure_future(outcome_of(invocation))
    try:
        done, _ = await asyncio.wait([waiting], timeout=seconds)
        if not done and invocation.invoker is not None:
            invocation.invoker.withdraw(invocation, "timeout")
            done, _ = await asyncio.wait([waiting], timeout=max(seconds, GRACE / 1e9))
    except asyncio.CancelledError:
        waiting.cancel()
        raise
    if not done and invocation.invoker is not None:
        waiting.cancel()
        invocation.abandoned = True         # its caller knows that it has no outcome
        raise unanswered(invocation)
    return await waiting


async def outcome_of(invocation):
    """Await an invocation as a task of its own."""
    return await invocation
