# cython: embedsignature=True, embedsignature.format=clinic
"""Invocations: calls of operations that are under way.

An invocation is the one kind of future that there is: a thread waits for its `result`, a
coroutine awaits it, or it is let go. A failure that is not asked for is logged.
"""

import logging

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)
    int Py_IsInitialized() noexcept     # not any more while the interpreter ends

from orcalike.runtime.awaiting import blocking_result
from orcalike.runtime.durations import seconds_of
from orcalike.runtime.errors import InvocationCancelled, InvocationTimeout
from orcalike.runtime.raising import fresh
from orcalike.transport.wording import repr_of
from orcalike.runtime.event_loops cimport (
    cancelled_error,
    is_turn_of_others,
    loop_here,
    must_not_block,
    none_in_a_row,
    tell,
)
from orcalike.transport.drivers.deferral cimport drop_later, hold
from orcalike.transport.drivers.driver cimport Waitable
from orcalike.transport.layers.base cimport NEVER

_log = logging.getLogger("orcalike")
cdef const void* no_order = NULL        # of a stack without an order in shared memory


@cython.final
cdef class Unasked:
    """A failure that was not asked for yet; it is logged if it never is.

    It is an object of its own for the finalizer, which is called while all is whole: `__dealloc__` comes
    when a collector of cycles has emptied the error, and to show one that was emptied is a crash.
    An invocation that did not fail does without: a finalizer takes longer than to let the object go.
    """

    def __del__(self):
        if self.asked or not Py_IsInitialized():
            return
        hold()                          # what a signal's handler raised in here would be lost
        try:
            complain(self.operation, self.error)
        finally:
            drop_later()


cdef Unasked unasked(object operation, object error):
    cdef Unasked made = Unasked.__new__(Unasked)
    made.operation = operation
    made.error = error
    return made


@cython.final
@cython.no_gc_clear                     # `__dealloc__` needs its invoker
cdef class Invocation(Waitable):
    """One call of an operation, on its way: wait for it, await it, withdraw it, or let it go."""

    def __dealloc__(self):
        if self.invoker is not None:
            self.invoker.forget(self)

    # What the runtime does.

    cdef int succeed(self, object result) except -1:
        self.outcome = RESULT
        self.value = result
        return self.settle()

    cdef int fail(self, object error) except -1:
        if not self.abandoned:          # first: to make it may let another thread go on, which asks
            self.unasked = unasked(self.operation, error)
        self.outcome = ERROR
        self.value = error
        return self.settle()

    cdef int settle(self) except -1:
        """It is done: wake the threads and the coroutines that wait for it."""
        cdef Invocation kept = None
        if self.invoker is not None and self.invoker.last is self:
            self.invoker.last, kept = None, self    # behind this nothing may hold it
        self.invoker = None
        self.finished = True
        if self.sleeper is not NULL or self.roused is not None:
            self.wake()
        if self.waiters is not None:
            waiters, self.waiters = self.waiters, None
            for future in waiters:
                tell(future)
        return 0

    cdef object take(self):
        """The result, or the exception raised."""
        if self.outcome == ERROR:
            self.ask()
            raise fresh(self.value)
        return self.value

    cdef int ask(self) except -1:
        """Its failure is known to a caller."""
        if self.unasked is not None:
            self.unasked.asked = True
            self.unasked = None
        return 0

    cdef bint renew(self) noexcept:
        """Be a new one, if nothing but the caller has this one: to make another takes longer.

        What it is of is set when it is sent, and is mostly the same.
        """
        if Py_REFCNT(<PyObject*>self) != 1 or self.sleeper is not NULL:
            return False
        if self.invoker is not None:    # it is under way, and was let go
            self.invoker.forget(self)
        self.finished = self.abandoned = self.waits_for_little = False
        self.outcome = UNDER_WAY
        if self.value is not None:
            self.value = None
        if self.withdrawn is not None or self.unasked is not None:
            self.withdrawn = self.unasked = None
        return True

    def set_result(self, result):
        """It has succeeded."""
        self.succeed(result)

    def set_error(self, error):
        """It has failed."""
        self.fail(error)

    # What the program does.

    def result(self, timeout=None):
        """Wait for the result, or raise what the operation raised.

        `timeout`, in seconds or as "500ms", only ends the waiting (TimeoutError): the invocation
        goes on.
        """
        cdef Invoker invoker
        cdef int64_t limit = NEVER if timeout is None else nanoseconds(timeout)
        if not self.finished:
            if must_not_block():
                raise blocking_result(self.operation, name_of(self.operation))
            invoker = self.invoker          # which the outcome takes away
            if invoker is not None:
                if invoker.no_outcomes is not None:
                    raise fresh(invoker.no_outcomes)
                return invoker.await_outcome(self, limit, False)
            if self.outcome == UNDER_WAY:
                raise RuntimeError("this invocation was never sent")
        return self.take()

    def exception(self):
        """What the operation raised; None if it did not, or has not run yet."""
        if self.outcome != ERROR:
            return None
        self.ask()
        return self.value

    def done(self):
        """Whether the outcome is here."""
        return self.outcome != UNDER_WAY

    def cancel(self):
        """Ask for its withdrawal, which is ordered too; False where the outcome is here already.

        Where it ran first, it ends with its result; else with InvocationCancelled.
        """
        if self.outcome != UNDER_WAY or self.invoker is None:
            return False
        return self.invoker.withdraw(self, "cancelled")

    def __await__(self):
        cdef Invoker invoker
        if self.outcome == UNDER_WAY and self.invoker is not None:
            self.invoker.watch()        # which may have it settled
        if self.outcome == UNDER_WAY:
            future = loop_here().create_future()
            first = [future]
            if self.waiters is None:
                self.waiters = first
            else:
                self.waiters.append(future)
            none_in_a_row()
            invoker = self.invoker          # which the outcome takes away
            try:
                if invoker is not None:
                    invoker.begin_await(self)
                # Another thread may have settled it before `future` was among the waiters, and so not have woken it.
                if self.outcome == UNDER_WAY:
                    yield from future.__await__()
            except cancelled_error():
                self.cancel()
                raise
            finally:
                if invoker is not None:
                    invoker.end_await(self)
        elif is_turn_of_others(self.sent_at):
            yield
        return self.take()

    def __repr__(self):
        state = ("under way", "done", "failed")[<int>self.outcome]
        name = name_of(self.operation)
        return f"<Invocation {self.ticket} of {name}: {state}>"


def unanswered(Invocation invocation):
    """How an invocation ends that was withdrawn in vain."""
    return InvocationTimeout(f"{title_of(invocation)}: the group does not answer, so it is not known "
                             "whether it will run", "unknown")


def withdrawal_error(Invocation invocation):
    """How a withdrawn invocation ends, which has not run."""
    operation = name_of(invocation.operation)
    if invocation.withdrawn == "timeout":
        return InvocationTimeout(
            f"{operation}: the time limit passed; it did not run and never will", "withdrawn")
    return InvocationCancelled(f"{operation} was withdrawn: it did not run and never will")


def name_of(operation):
    """The name of an operation, or of what the group does, for people."""
    if operation is None:
        return "an invocation"
    return operation if isinstance(operation, str) else operation.title


def without_room(operation):
    """How a call ends whose time limit passed while too much was under way."""
    return InvocationTimeout(f"{name_of(operation)}: the time limit passed while this member had too "
                             "much under way; it was not sent", "withdrawn")


def title_of(Invocation invocation):
    """The operation's name, and the object's, for people."""
    name = name_of(invocation.operation)
    return name if invocation.replica is None else f"{name} of {invocation.replica.name!r}"


def annotate(error, operation, replica):
    """Note on an exception where it was raised."""
    name = name_of(operation)
    where = "" if replica is None else f" of {replica.name!r}"
    try:
        error.add_note(f"in {name}{where}")
    except Exception:
        pass                            # its class, which is the program's, takes none


def complain(operation, error):
    """Log a failure that was not asked for; that a call was withdrawn is none."""
    if not isinstance(error, (InvocationCancelled, InvocationTimeout)):
        name = name_of(operation)
        _log.warning("%s failed, and its outcome was not asked for: %s", name, repr_of(error))


cdef int64_t nanoseconds(object seconds) except -1:
    """A time limit in ns; NEVER for None."""
    if seconds is None:
        return NEVER
    return <int64_t>min(seconds_of(seconds) * 1e9, 9e18)


cdef class Invoker:
    """What carries invocations out; this one knows none."""

    def __cinit__(self):
        self.order = &no_order

    cdef int watch(self) except -1:
        """A coroutine begins to wait."""
        return 0

    cdef int forget(self, Invocation invocation) noexcept:
        """`invocation` is held no more."""
        return 0

    cdef object invoke(self, object replica, object operation, PyObject* const* args,
                       Py_ssize_t count, PyObject* names, int64_t timeout, unsigned int wanted):
        """Send a write and wait for its outcome, for at most `timeout` ns.

        `args`: those behind the object, `count` by position, then the named ones. `wanted`: until so many
        members have applied it; 0 if it is not asked for.
        """
        raise RuntimeError("no runtime")

    cdef Invocation invoke_nowait(self, object replica, object operation, PyObject* const* args,
                                  Py_ssize_t count, PyObject* names, unsigned int wanted, bint awaited):
        """Send a write; `awaited`: a coroutine is about to wait for it."""
        raise RuntimeError("no runtime")

    cdef object read(self, object replica, object operation, PyObject* const* args,
                     Py_ssize_t count, PyObject* names, int64_t timeout):
        """Run a read that cannot run at once; the object is the first of the `count` arguments."""
        raise RuntimeError("no runtime")

    cdef Invocation read_nowait(self, object replica, object operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names):
        """Run a read when it can run, without waiting."""
        raise RuntimeError("no runtime")

    cdef object await_outcome(self, Invocation invocation, int64_t timeout, bint withdraw):
        """Have this thread wait for an outcome; withdraw the invocation when the time is over."""
        raise RuntimeError("no runtime")

    cdef int release(self, object replica) except -1:
        """The object's mutex is let go, and a thread waits for it."""
        return 0

    cdef int queue_full(self, object replica) except -1:
        """The object's lock queue has reached its bound."""
        return 0

    cdef int queue_has_room(self, object replica) except -1:
        """It is half empty again."""
        return 0

    cdef int watch_threads(self) except -1:
        """A thread that does not receive has an object's mutex, or may soon have it."""
        return 0

    cdef int post_call(self, object replica, object operation, tuple args) except -1:
        """Send a write that nothing waits for, whether there is room for it or not; nothing if the group is lost."""
        return 0

    cdef object begin_pending(self):
        """A task is not applied yet: what is to be paid when it is, or None."""
        return None

    cdef int let_go_on(self, object source, bint writes_others) except -1:
        """A call of that member's, by incarnation, waits for its guard no longer; it may write more than the object that let it."""
        return 0

    cdef int begin_await(self, Invocation invocation) except -1:
        """A coroutine waits from here on; `end_await` comes next."""
        return 0

    cdef int end_await(self, Invocation invocation) except -1:
        """It waits no longer."""
        return 0

    cpdef bint withdraw(self, Invocation invocation, str why):
        """Ask, in the order, that `invocation` shall not run any more."""
        return False

    def invoke_atomic(self, atomic, args, named, wanted=0, awaited=False):
        """Invoke an atomic function; returns the invocation."""
        raise RuntimeError("no runtime")

    def call_atomic(self, atomic, args, named, timeout, wanted=0):
        """Invoke an atomic function, and wait for the outcome; `timeout` in seconds."""
        raise RuntimeError("no runtime")

    async def wait_for_room(self):
        """Wait until this member may invoke more."""
