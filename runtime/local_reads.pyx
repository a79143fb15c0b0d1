"""Reads that are more than a call of their function, and the arguments of a call as Python objects.

What the order has by then is applied first. A read of a free object runs at once, if its guard holds; else it queues for
the object's mutex as a write does, and one whose guard is false waits at the object. No other replica knows of
it. Once the group was left it runs on the last state, if its guard holds there.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from orcalike.runtime.arguments import positional
from orcalike.runtime.errors import GroupClosed, TooManyWaiting
from orcalike.runtime.raising import fresh, own

from orcalike.runtime.call cimport Call, new_call
from orcalike.runtime.invocation cimport Invocation, Invoker
from orcalike.runtime.operation cimport Operation, test_guard
from orcalike.runtime.replica cimport CLOSED, LOCKED, TASKS_MAX, WAITING, Replica, end, refuse_nested, thread_slot
from orcalike.runtime.task cimport submit
from orcalike.transport.drivers.deferral cimport drop_later, hold
from orcalike.transport.drivers.driver cimport Driver
from orcalike.transport.drivers.look cimport ring_is_stale
from orcalike.transport.layers.pack cimport Pack

cdef extern from "Python.h":
    Py_ssize_t PyTuple_GET_SIZE(PyObject*) noexcept
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t) noexcept


cdef tuple given_of(PyObject* const* args, Py_ssize_t count):
    """The positional arguments."""
    cdef tuple given = PyTuple_New(count)
    cdef Py_ssize_t i
    for i in range(count):
        Py_INCREF(<object>args[i])
        PyTuple_SET_ITEM(given, i, <object>args[i])
    return given


cdef dict named_of(PyObject* const* args, Py_ssize_t count, PyObject* names):
    """The keyword arguments, which follow the positional ones."""
    cdef Py_ssize_t i
    cdef dict named = {}
    for i in range(PyTuple_GET_SIZE(names) if names is not NULL else 0):
        named[<object>PyTuple_GET_ITEM(names, i)] = <object>args[count + i]
    return named


cdef int catch_up(Invoker invoker, Driver driver, Pack pack) except -1:
    """Have all applied first that is in the order, where it is in memory that this member can look at."""
    if (invoker.order[0] is not NULL and ring_is_stale(invoker.order[0]) and thread_slot()[0] is NULL
            and not driver.is_inside()):
        driver.catch_up(pack.core)
    return 0


cdef bint is_free(Replica target, Operation operation, Py_ssize_t count, PyObject* names) noexcept:
    """Whether nothing stands against a read of this object now, and these are arguments that its guard takes, too."""
    return (target.flags & ~<unsigned int>WAITING == 0 and thread_slot()[0] is NULL
            and (operation.guard is None or names is NULL and operation.fits(count - 1)))


cdef PyObject* read_free(Replica target, Operation operation, PyObject* const* args, Py_ssize_t count,
                         PyObject* names) except? NULL:
    """Read a free object: what the function returns. NULL without an exception: the guard is false, and the mutex is kept."""
    cdef PyObject* result = NULL
    cdef void** slot = thread_slot()
    cdef int holds = 1
    target.flags |= LOCKED
    target.owner = slot
    slot[0] = <void*>target
    if operation.guard is not None:
        holds = test_guard(operation, target, args, count)
    if holds > 0:
        result = operation.call(<PyObject*>operation.function, args, count, names)
    if holds == 0:
        slot[0] = NULL
        target.owner = NULL
        return NULL
    end(target)
    if result is NULL or target.flags & ~<unsigned int>WAITING:
        return operation.ended(<PyObject*>target, result)
    return result


cdef Invocation begin_read(Invocation invocation, Invoker invoker, object runtime, Replica target,
                           Operation operation, PyObject* const* args, Py_ssize_t count,
                           PyObject* names, bint brief, bint on_loop, bint tried):
    """Queue for the mutex, with an invocation that is new.

    `brief`: calls that wait for the object meanwhile run on another thread.
    `on_loop`: an event loop stands still until it is over, so it fails if its guard is false.
    `tried`: its guard is false, and the caller has the mutex.
    """
    cdef Call call
    if thread_slot()[0] is not NULL:
        refuse_nested(operation, True)
    given, named = given_of(args + 1, count - 1), named_of(args, count, names)
    if operation.guard is not None and (named or not operation.fits(len(given))):
        positional(operation, given, named)     # if they do not fit, it names the operation and not the guard
    invocation.invoker = invoker
    invocation.wanted = 0
    if target.flags & CLOSED:
        closed = GroupClosed(f"{target.name!r}: the group was left")
        read_last_state(invocation, operation, <object>args[0], given, named, closed)
        return invocation
    if target.queue is not None and len(target.queue) >= TASKS_MAX:
        invocation.fail(TooManyWaiting(
            f"{target.name!r}: {len(target.queue)} calls wait until it is free; this one did "
            "not run and never will"))
        return invocation
    call = new_call(runtime, operation, 0, None, given, named).for_reader(invocation, brief, on_loop)
    call.replicas = target.alone
    invoker.reads_slow += 1
    hold()
    try:
        if tried:
            call.let_wait()
        else:
            submit(call)
    finally:
        drop_later()
    return invocation


cdef int read_last_state(Invocation invocation, Operation operation, object target, tuple given,
                         dict named, object closed) except -1:
    """A read after the group was left: the object shows its last state.

    One whose guard does not hold ends with `closed`, as nothing can make it hold any more.
    """
    try:
        if operation.guard is not None:
            if named or not operation.fits(len(given)):
                positional(operation, given, named)     # as above
            if not operation.guard(target, *given, **named):
                raise fresh(closed)
        invocation.succeed(operation.function(target, *given, **named))
    except Exception as error:
        invocation.fail(own(error))
    return 0
